#include "tests/support/allreduce/proof.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/error.h"
#include "tests/support/allreduce/intervals.h"
#include "tests/support/allreduce/races.h"
#include "tests/support/allreduce/symbolic_sum.h"

namespace cnn::allreduce {
namespace {

// The buffer cut at every begin and end that any rank's list names: within a piece all elements
// fare alike.
class Pieces {
 public:
  Pieces(std::span<const RankPlan> plans, std::size_t elements) : elements_(elements) {
    bounds_ = {0, elements};
    for (const RankPlan& plan : plans) {
      for (const Chunk& chunk : plan.chunks) {
        for (const Action& action : chunk.actions) {
          std::visit([this](const auto& a) { cut_at(a); }, action);
        }
      }
      unite();
    }
  }
  std::size_t count() const { return bounds_.size() - 1; }
  Range at(const Range& range) const { return {index(range.begin), index(range.end)}; }

 private:
  template <class A>
  void cut_at(const A& action) {
    if constexpr (requires { action.range; }) {
      check(action.range.begin < action.range.end && action.range.end <= elements_,
            "an action has no elements, or some beyond the buffer");
      if (bounds_.back() != action.range.end) {
        bounds_.push_back(action.range.begin);
        bounds_.push_back(action.range.end);
      }
      bounds_.push_back(action.range.begin);
    }
  }
  void unite() {
    std::ranges::sort(bounds_);
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  }
  std::size_t index(std::size_t element) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(bounds_, element) - bounds_.begin());
  }

  std::size_t elements_;
  std::vector<std::size_t> bounds_;
};

struct Arrived {  // in the scratch
  Range range;
  std::vector<SumId> sums;
};

// The messages that a chunk of a rank has posted and not yet waited for.
struct Pending {
  Intervals reads, writes;
};

struct Fiber {  // one chunk of one rank
  std::size_t next = 0;
  std::size_t open_messages = 0;  // posted, not matched
  std::size_t chunks_to_wait_for = 0;
  Pending own, scratch;                           // in the buffer and in the scratch
  std::vector<const std::vector<int>*> barriers;  // so far
  bool done = false;
};

struct Mail {  // between two ranks in one chunk, what is posted and not matched
  const Send* send = nullptr;
  const Receive* receive = nullptr;
};

class Interpreter {
 public:
  Interpreter(std::span<const RankPlan> plans, const Claim& claim)
      : plans_(plans),
        claim_(claim),
        pieces_(plans, claim.elements),
        sums_(static_cast<int>(plans.size())),
        chunks_(plans.front().chunks.size()),
        scratch_(plans.size()),
        traffic_(plans.size()) {
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      check(plans[rank].chunks.size() == chunks_, "ranks have different numbers of chunks");
      buffers_.emplace_back(pieces_.count(), sums_.contribution(static_cast<int>(rank)));
      fibers_.emplace_back(chunks_);
    }
    if (std::ranges::any_of(plans, [](const RankPlan& plan) { return !plan.groups.empty(); })) {
      races_.emplace(plans.size(), chunks_);
    }
  }

  std::vector<Traffic> run() {
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
        fibers_[rank][chunk].chunks_to_wait_for = plans_[rank].chunks[chunk].after.size();
        ready_.push_back({rank, chunk});
      }
    }
    while (!ready_.empty()) {
      at_ = ready_.front();
      ready_.pop_front();
      advance();
    }
    check_all_done();
    check_results();
    return traffic_;
  }

 private:
  struct At {
    std::size_t rank, chunk;
    auto operator<=>(const At&) const = default;
  };

  Fiber& fiber() { return fibers_[at_.rank][at_.chunk]; }
  const RankPlan& plan() const { return plans_[at_.rank]; }

  std::string where() const {
    return "rank " + std::to_string(at_.rank) + ", chunk " + std::to_string(at_.chunk) +
           ", action " + std::to_string(fibers_[at_.rank][at_.chunk].next) + ": ";
  }
  void require(bool ok, const char* what) const {
    if (!ok) {
      throw Error(where() + what);
    }
  }

  void advance() {
    const std::vector<Action>& actions = plan().chunks[at_.chunk].actions;
    while (fiber().chunks_to_wait_for == 0 && !fiber().done) {
      if (fiber().next == actions.size()) {
        if (fiber().open_messages > 0) {
          return;
        }
        end_chunk();
        return;
      }
      const bool went_on =
          std::visit([this](const auto& a) { return step(a); }, actions[fiber().next]);
      if (!went_on) {
        return;
      }
      ++fiber().next;
    }
  }

  void end_chunk() {
    fiber().done = true;
    for (std::size_t later = at_.chunk + 1; later < chunks_; ++later) {
      const std::vector<std::size_t>& after = plan().chunks[later].after;
      const auto times = static_cast<std::size_t>(std::ranges::count(after, at_.chunk));
      fibers_[at_.rank][later].chunks_to_wait_for -= times;
      if (times > 0) {
        ready_.push_back({at_.rank, later});
      }
    }
  }

  void access(std::size_t owner, const Range& range, bool writes) {
    if (races_) {
      const Range pieces = pieces_.at(range);
      for (std::size_t piece = pieces.begin; piece < pieces.end; ++piece) {
        races_->access({at_.chunk, owner, piece}, at_.rank, writes);
      }
    }
  }
  void check_pending(const Pending& pending, const Range& range, bool writes) const {
    require(!pending.writes.meets(range) && !(writes && pending.reads.meets(range)),
            "touches what a message that it has not waited for reads or writes");
  }
  void post(Pending& pending, const Range& range, bool writes) {
    check_pending(pending, range, writes);
    (writes ? pending.writes : pending.reads).add(range);
    ++fiber().open_messages;
  }
  Mail& mail(std::size_t from, std::size_t to) {
    require(from < plans_.size() && to < plans_.size() && from != to, "talks to no other rank");
    return mail_[(at_.chunk * plans_.size() + from) * plans_.size() + to];
  }

  bool step(const Send& send) {
    const auto to = static_cast<std::size_t>(send.to);
    Mail& slot = mail(at_.rank, to);
    require(slot.send == nullptr, "sends before its last message was received");
    post(fiber().own, send.range, false);
    access(at_.rank, send.range, false);
    slot.send = &send;
    Traffic& traffic = traffic_[at_.rank];
    ++traffic.messages;
    traffic.elements_sent += send.range.size();
    match(slot, at_.rank, to);
    return true;
  }

  bool step(const Receive& receive) {
    const auto from = static_cast<std::size_t>(receive.from);
    Mail& slot = mail(from, at_.rank);
    require(slot.receive == nullptr, "receives two messages of one rank at once");
    if (receive.scratch_offset) {
      post(fiber().scratch,
           {*receive.scratch_offset, *receive.scratch_offset + receive.range.size()}, true);
    } else {
      post(fiber().own, receive.range, true);
      access(at_.rank, receive.range, true);
    }
    slot.receive = &receive;
    match(slot, from, at_.rank);
    return true;
  }

  void match(Mail& slot, std::size_t from, std::size_t to) {
    if (slot.send == nullptr || slot.receive == nullptr) {
      return;
    }
    require(slot.send->range == slot.receive->range, "a message is not the range expected");
    const Range pieces = pieces_.at(slot.send->range);
    const auto first = buffers_[from].begin();
    const auto begin = first + static_cast<std::ptrdiff_t>(pieces.begin);
    const auto end = first + static_cast<std::ptrdiff_t>(pieces.end);
    if (slot.receive->scratch_offset) {
      arrive(scratch_[to], *slot.receive->scratch_offset, {slot.send->range, {begin, end}});
    } else {
      std::copy(begin, end, buffers_[to].begin() + static_cast<std::ptrdiff_t>(pieces.begin));
    }
    slot = {};
    if (races_) {
      races_->join(at_.chunk, to, races_->clock(at_.chunk, from));
      races_->tick(at_.chunk, from);
    }
    for (const std::size_t rank : {from, to}) {
      if (--fibers_[rank][at_.chunk].open_messages == 0 && rank != at_.rank) {
        ready_.push_back({rank, at_.chunk});
      }
    }
  }

  // Data that lay there, wholly or in part, is gone.
  static void arrive(std::map<std::size_t, Arrived>& scratch, std::size_t at, Arrived arrived) {
    const std::size_t size = arrived.range.size();
    auto next = scratch.lower_bound(at);
    if (next != scratch.begin() &&
        std::prev(next)->first + std::prev(next)->second.range.size() > at) {
      --next;
    }
    while (next != scratch.end() && next->first < at + size) {
      next = scratch.erase(next);
    }
    scratch.emplace(at, std::move(arrived));
  }

  bool step(const Wait& /*wait*/) {
    if (fiber().open_messages > 0) {
      return false;
    }
    for (const bool writes : {false, true}) {  // until here
      const Intervals& touched = writes ? fiber().own.writes : fiber().own.reads;
      for (const auto& [begin, end] : touched.ends()) {
        access(at_.rank, {begin, end}, writes);
      }
    }
    fiber().own = {};
    fiber().scratch = {};
    return true;
  }

  bool step(const Barrier& barrier) {
    const std::vector<int>& group = plan().groups.at(barrier.group);
    const auto number = std::pair(at_, fiber().barriers.size());
    if (!arrived_.contains(number)) {  // else it was woken
      require(std::ranges::count(group, static_cast<int>(at_.rank)) == 1 && races_,
              "meets a group that it is not of");
      arrived_.emplace(number, Arrival{&group, races_->clock(at_.chunk, at_.rank)});
      races_->tick(at_.chunk, at_.rank);
      for (const int other : group) {
        if (const auto rank = static_cast<std::size_t>(other); rank != at_.rank) {
          ready_.push_back({rank, at_.chunk});
        }
      }
    }
    for (const int other : group) {
      const At there{static_cast<std::size_t>(other), at_.chunk};
      const auto arrival = arrived_.find({there, number.second});
      if (arrival == arrived_.end()) {
        return false;
      }
      require(*arrival->second.group == group, "ranks meet in different groups");
    }
    for (const int other : group) {
      const At there{static_cast<std::size_t>(other), at_.chunk};
      races_->join(at_.chunk, at_.rank, arrived_.at({there, number.second}).clock);
    }
    fiber().barriers.push_back(&group);
    return true;
  }

  SumId operand(const Operand& part, const Sum& sum, std::size_t piece) {
    if (part.source == Operand::Source::own_buffer) {
      return buffers_[at_.rank][piece];
    }
    if (part.source == Operand::Source::peer_buffer) {
      return buffers_.at(part.index)[piece];
    }
    const auto arrived = scratch_[at_.rank].find(part.index);
    require(arrived != scratch_[at_.rank].end() && arrived->second.range == sum.range,
            "adds what has not arrived");
    return arrived->second.sums[piece - pieces_.at(sum.range).begin];
  }

  void check_operands(const Sum& sum) {
    for (const Operand& part : plan().operands_of(sum)) {
      if (part.source == Operand::Source::scratch) {
        check_pending(fiber().scratch, {part.index, part.index + sum.range.size()}, false);
      } else {
        access(part.source == Operand::Source::own_buffer ? at_.rank : part.index, sum.range,
               false);
      }
    }
    check_pending(fiber().own, sum.range, true);
  }

  bool step(const Sum& sum) {
    require(sum.operand_count > 0, "adds nothing");
    check_operands(sum);
    const std::vector<int> own{static_cast<int>(at_.rank)};
    const std::vector<int>& into = sum.into ? plan().groups.at(*sum.into) : own;
    const Range pieces = pieces_.at(sum.range);
    std::vector<SumId> parts(sum.operand_count);
    for (std::size_t piece = pieces.begin; piece < pieces.end; ++piece) {
      std::ranges::transform(plan().operands_of(sum), parts.begin(),
                             [&](const Operand& part) { return operand(part, sum, piece); });
      const SumId result = sums_.add(parts, sum.pairwise);
      const SumId left = sum.last ? sums_.finish(result) : result;
      for (const int rank : into) {
        buffers_.at(static_cast<std::size_t>(rank))[piece] = left;
      }
    }
    for (const int rank : into) {
      access(static_cast<std::size_t>(rank), sum.range, true);
    }
    traffic_[at_.rank].elements_added += (sum.operand_count - 1) * sum.range.size();
    return true;
  }

  void check_all_done() {
    for (at_.rank = 0; at_.rank < plans_.size(); ++at_.rank) {
      for (at_.chunk = 0; at_.chunk < chunks_; ++at_.chunk) {
        require(fiber().done, "never ends: what it waits for does not come");
        require(fiber().barriers.size() == fibers_[0][at_.chunk].barriers.size(),
                "meets others more or less often than rank 0");
      }
    }
  }

  void check_results() {
    std::vector<int> dims = claim_.dims;
    if (dims.empty()) {
      dims = {static_cast<int>(plans_.size())};
    }
    const std::optional<SumId> claimed = claim_.order == Order::fast
                                             ? std::nullopt
                                             : std::optional(sums_.expected(claim_.order, dims));
    for (std::size_t piece = 0; claim_.elements > 0 && piece < pieces_.count(); ++piece) {
      const SumId wanted = claimed.value_or(buffers_[0][piece]);
      for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
        const SumId result = buffers_[rank][piece];
        const char* const wrong =
            !sums_.complete(result) ? "not every contribution is in it exactly once"
            : !sums_.finished(result) && plans_.size() > 1 ? "the sum is not finished"
            : result != wanted ? "not the sum that others have, or in another order"
                               : nullptr;
        if (wrong != nullptr) {
          throw Error("rank " + std::to_string(rank) + ", piece " + std::to_string(piece) +
                      " of the buffer: " + wrong);
        }
      }
    }
  }

  struct Arrival {
    const std::vector<int>* group;
    RaceDetector::Clock clock;
  };

  std::span<const RankPlan> plans_;
  const Claim& claim_;
  Pieces pieces_;
  SymbolicSums sums_;
  std::size_t chunks_;
  std::vector<std::vector<SumId>> buffers_;              // [rank][piece]
  std::vector<std::map<std::size_t, Arrived>> scratch_;  // [rank], by element
  std::vector<std::vector<Fiber>> fibers_;               // [rank][chunk]
  std::vector<Traffic> traffic_;
  std::unordered_map<std::size_t, Mail> mail_;
  std::map<std::pair<At, std::size_t>, Arrival> arrived_;
  std::optional<RaceDetector> races_;
  std::deque<At> ready_;
  At at_{};
};

}  // namespace

std::vector<Traffic> prove(std::span<const RankPlan> plans, const Claim& claim) {
  check(!plans.empty(), "an all-reduce has no ranks");
  check_chunks_apart(plans);
  return Interpreter(plans, claim).run();
}

}  // namespace cnn::allreduce
