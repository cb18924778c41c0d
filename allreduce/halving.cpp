#include <utility>
#include <vector>

#include "allreduce/algorithms.h"
#include "allreduce/folding.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {
namespace {

struct Halving {
  int partner;
  Range kept, given;
};

// Near ranks first: they share a host, and the first halves are the large ones.
std::vector<Halving> halvings(const Folding& folding, int index, Range range) {
  std::vector<Halving> result;
  for (int distance = 1; distance < folding.power; distance *= 2) {
    Range kept = slice(range, 0, 2), given = slice(range, 1, 2);
    if ((index & distance) != 0) {
      std::swap(kept, given);
    }
    result.push_back({folding.rank(index ^ distance), kept, given});
    range = kept;
  }
  return result;
}

void halve_and_gather(Writer& writer, const std::vector<Halving>& rounds) {
  for (const Halving& round : rounds) {
    writer.send(round.partner, round.given);
    const Part part = writer.receive_beside(round.partner, round.kept);
    writer.wait();
    writer.add(round.kept, part, &round == &rounds.back());
  }
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    writer.send(round->partner, round->kept);
    writer.receive(round->partner, round->given);
    writer.wait();
  }
}

// Both ranks of a pair add one half, so that none has to take a whole buffer and add it all.
void fold(Writer& writer, const Folding& folding, int rank, Range range) {
  const bool even = folding.goes_on(rank);
  const int partner = even ? rank + 1 : rank - 1;
  const Range mine = slice(range, even ? 0 : 1, 2), other = slice(range, even ? 1 : 0, 2);
  writer.send(partner, other);
  const Part part = writer.receive_beside(partner, mine);
  writer.wait();
  writer.add(mine, part, false);
  if (even) {
    writer.receive(partner, other);
  } else {
    writer.send(partner, mine);
  }
  writer.wait();
}

}  // namespace

RankPlan halving(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Folding folding(topology.ranks());
  return in_chunks(options, {0, elements}, [&](Writer& writer, Range range) {
    if (folding.in_pair(rank)) {
      fold(writer, folding, rank, range);
    }
    if (folding.goes_on(rank)) {
      halve_and_gather(writer, halvings(folding, folding.index(rank), range));
    }
    if (folding.in_pair(rank)) {
      if (folding.goes_on(rank)) {
        writer.send(rank + 1, range);
      } else {
        writer.receive(rank - 1, range);
      }
      writer.wait();
    }
  });
}

}  // namespace cnn::allreduce
