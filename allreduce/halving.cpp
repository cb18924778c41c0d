#include <utility>
#include <vector>

#include "allreduce/algorithms.h"
#include "allreduce/folding.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {
namespace {

// A round of recursive halving: the half of the range that a rank keeps.
struct Halving {
  int partner;
  Range kept, given;
};

// Returns the rounds of recursive halving (Rabenseifner, 2004). Near ranks come first: they share a
// host, and the first halves are the largest.
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

void halve_and_gather(PlanBuilder& builder, const std::vector<Halving>& rounds) {
  for (const Halving& round : rounds) {
    builder.send(round.partner, round.given);
    const Operand received = builder.receive_to_scratch(round.partner, round.kept);
    builder.wait();
    builder.add(round.kept, received, &round == &rounds.back());
  }
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    builder.send(round->partner, round->kept);
    builder.receive(round->partner, round->given);
    builder.wait();
  }
}

// Each rank of a pair adds one half, so that none has to receive and add a whole buffer.
void fold(PlanBuilder& builder, const Folding& folding, int rank, Range range) {
  const bool even = folding.goes_on(rank);
  const int partner = even ? rank + 1 : rank - 1;
  const Range mine = slice(range, even ? 0 : 1, 2), other = slice(range, even ? 1 : 0, 2);
  builder.send(partner, other);
  const Operand received = builder.receive_to_scratch(partner, mine);
  builder.wait();
  builder.add(mine, received, false);
  if (even) {
    builder.receive(partner, other);
  } else {
    builder.send(partner, mine);
  }
  builder.wait();
}

}  // namespace

RankPlan halving(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Folding folding(topology.ranks());
  return in_chunks(options, {0, elements}, [&](PlanBuilder& builder, Range range) {
    if (folding.in_pair(rank)) {
      fold(builder, folding, rank, range);
    }
    if (folding.goes_on(rank)) {
      halve_and_gather(builder, halvings(folding, folding.index(rank), range));
    }
    if (folding.in_pair(rank)) {
      if (folding.goes_on(rank)) {
        builder.send(rank + 1, range);
      } else {
        builder.receive(rank - 1, range);
      }
      builder.wait();
    }
  });
}

}  // namespace cnn::allreduce
