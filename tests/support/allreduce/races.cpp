#include "tests/support/allreduce/races.h"

#include <algorithm>
#include <string>

#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

struct Access {
  std::size_t owner, chunk;  // the rank that owns the memory
  Range range;
  bool in_scratch, writes, foreign;
};

std::string text(const Range& range) {
  return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

class Accesses {
 public:
  Accesses(const RankPlan& plan, std::size_t rank) : plan_(plan), rank_(rank) {
    for (chunk_ = 0; chunk_ < plan.chunks.size(); ++chunk_) {
      for (const Action& action : plan.chunks[chunk_].actions) {
        std::visit([this](const auto& a) { add(a); }, action);
      }
    }
  }
  std::vector<Access> take() && { return std::move(all_); }

 private:
  void own(Range range, bool writes) {
    all_.push_back({rank_, chunk_, range, false, writes, false});
  }
  void in_scratch(std::size_t at, std::size_t size, bool writes) {
    all_.push_back({rank_, chunk_, {at, at + size}, true, writes, false});
  }
  void add(const Send& send) { own(send.range, false); }
  void add(const Receive& receive) {
    if (receive.scratch_offset) {
      in_scratch(*receive.scratch_offset, receive.range.size(), true);
    } else {
      own(receive.range, true);
    }
  }
  void add(const Sum& sum) {
    for (const Operand& operand : plan_.operands_of(sum)) {
      if (operand.source == Operand::Source::scratch) {
        in_scratch(operand.index, sum.range.size(), false);
      } else {
        const std::size_t owner =
            operand.source == Operand::Source::peer_buffer ? operand.index : rank_;
        all_.push_back({owner, chunk_, sum.range, false, false, owner != rank_});
      }
    }
    if (!sum.into) {
      own(sum.range, true);
      return;
    }
    for (const int to : plan_.groups.at(*sum.into)) {
      const auto owner = static_cast<std::size_t>(to);
      all_.push_back({owner, chunk_, sum.range, false, true, owner != rank_});
    }
  }
  void add(const Wait& /*wait*/) {}
  void add(const Barrier& /*meet*/) {}

  const RankPlan& plan_;
  std::size_t rank_, chunk_ = 0;
  std::vector<Access> all_;
};

// Sweeps over the accesses in the order of their begin. Only accesses that reach beyond the next
// begin can overlap it.
void check_apart(std::vector<Access>& accesses, const ChunkOrder& order, std::size_t rank) {
  std::ranges::sort(accesses, {}, [](const Access& a) { return a.range.begin; });
  std::vector<Access> open;
  for (const Access& next : accesses) {
    std::erase_if(open, [&](const Access& a) { return a.range.end <= next.range.begin; });
    for (const Access& a : open) {
      const bool apart = a.chunk == next.chunk || (!a.writes && !next.writes);
      if (!apart && (!order.ordered(a.chunk, next.chunk) || a.foreign || next.foreign)) {
        throw Error("chunks " + std::to_string(a.chunk) + " and " + std::to_string(next.chunk) +
                    " of rank " + std::to_string(rank) + " may touch " + text(next.range) +
                    (next.in_scratch ? " of the scratch" : "") + " at the same time");
      }
    }
    const bool known = std::ranges::any_of(open, [&](const Access& a) {
      return a.chunk == next.chunk && a.writes >= next.writes && a.foreign >= next.foreign &&
             a.range.end >= next.range.end;
    });
    if (!known) {
      open.push_back(next);
    }
  }
}

}  // namespace

ChunkOrder::ChunkOrder(const RankPlan& plan) {
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    before_.emplace_back(c, false);
    for (const std::size_t earlier : plan.chunks[c].after) {
      check(earlier < c, "a chunk waits for itself or a later one");
      before_[c][earlier] = true;
      for (std::size_t i = 0; i < earlier; ++i) {
        before_[c][i] = before_[c][i] || before_[earlier][i];
      }
    }
  }
}

void check_chunks_apart(std::span<const RankPlan> plans) {
  std::vector<std::vector<Access>> own(plans.size()), scratch(plans.size());
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    for (const Access& access : Accesses(plans[rank], rank).take()) {
      check(access.owner < plans.size(), "a sum names a rank that does not exist");
      check(!access.in_scratch || access.range.end <= plans[rank].scratch,
            "a message does not fit into the scratch");
      if (plans[rank].chunks.size() > 1) {
        (access.in_scratch ? scratch : own)[access.owner].push_back(access);
      }
    }
  }
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    if (plans[rank].chunks.size() > 1) {
      const ChunkOrder order(plans[rank]);
      check_apart(own[rank], order, rank);
      check_apart(scratch[rank], order, rank);
    }
  }
}

RaceDetector::RaceDetector(std::size_t ranks, std::size_t chunks)
    : clocks_(chunks, std::vector<Clock>(ranks, Clock(ranks, 0))) {
  for (std::vector<Clock>& of_ranks : clocks_) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      of_ranks[rank][rank] = 1;
    }
  }
}

void RaceDetector::access(const Place& place, std::size_t rank, bool writes) {
  const Clock& now = clocks_[place.chunk][rank];
  History& history = histories_[place];
  history.reads.resize(now.size(), 0);
  const auto clash = [&](std::size_t other) {
    throw Error("ranks " + std::to_string(other) + " and " + std::to_string(rank) +
                " may touch piece " + std::to_string(place.piece) + " of rank " +
                std::to_string(place.owner) + " at the same time");
  };
  if (history.write && history.write->second > now[history.write->first]) {
    clash(history.write->first);
  }
  if (!writes) {
    history.reads[rank] = now[rank];
    return;
  }
  for (std::size_t other = 0; other < now.size(); ++other) {
    if (history.reads[other] > now[other]) {
      clash(other);
    }
  }
  history.write = {rank, now[rank]};
}

void RaceDetector::join(std::size_t chunk, std::size_t rank, const Clock& other) {
  Clock& mine = clocks_[chunk][rank];
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine[i] = std::max(mine[i], other[i]);
  }
}

}  // namespace cnn::allreduce
