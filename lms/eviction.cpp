#include "lms/eviction.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lms/live_bytes.h"
#include "lms/policy.h"
#include "lms/stash.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

class Replay {
 public:
  Replay(const Request& request, std::size_t bytes, std::span<const Stashed> tensors,
         EvictionRule rule)
      : request_(request), bytes_(bytes), live_(live_bytes(request)), rule_(rule) {
    for (const Stashed& tensor : tensors) {
      blocks_.push_back({.tensor = &tensor, .last_used = tensor.made});
    }
  }

  std::vector<Eviction> run() {
    for (std::size_t s = 0; s < live_.size(); ++s) {
      step(StepId{static_cast<std::uint32_t>(s)});
    }
    return std::move(evictions_);
  }

 private:
  struct Block {
    const Stashed* tensor = nullptr;
    StepId last_used{};
    std::optional<std::size_t> away;  // index in evictions_
    bool was_away = false;
  };

  static bool is_used(const Block& block, StepId step) {
    return std::ranges::binary_search(block.tensor->uses, step);
  }
  static std::size_t bytes_of(const Block& block) { return aligned(block.tensor->bytes); }

  // Returns the compute step at or after this one, whose operands are already on the device.
  StepId served(StepId step) const {
    for (std::size_t s = index_of(step); s < live_.size(); ++s) {
      if (request_.schedule.steps[s].lane == Lane::compute) {
        return StepId{static_cast<std::uint32_t>(s)};
      }
    }
    return step;
  }

  void step(StepId step) {
    const StepId user = served(step);
    for (Block& block : blocks_) {
      if (block.away && is_used(block, user)) {
        evictions_[*block.away].back_for = user;
        away_bytes_ -= bytes_of(block);
        block.away.reset();
      }
    }
    while (live_[index_of(step)] > bytes_ + away_bytes_) {
      const std::size_t missing = live_[index_of(step)] - bytes_ - away_bytes_;
      Block* victim = find(step, user, missing);
      if (victim == nullptr) {
        break;
      }
      evict(*victim, step, missing);
    }
    for (Block& block : blocks_) {
      if (is_used(block, step)) {
        block.last_used = std::max(block.last_used, step);
      }
    }
  }

  bool may_go(const Block& block, StepId step, StepId user) const {
    const std::int64_t most = request_.options.n_tensors;
    return !block.away && block.tensor->made < step && block.tensor->last > user &&
           !is_used(block, user) && (most < 0 || block.was_away || std::cmp_less(gone_, most));
  }

  Block* find(StepId step, StepId user, std::size_t missing) {
    const StepId next = user < StepId{static_cast<std::uint32_t>(live_.size() - 1)}
                            ? served(StepId{static_cast<std::uint32_t>(index_of(user) + 1)})
                            : user;
    Block* best = nullptr;
    const auto rank = [&](const Block& block) {
      const bool second_choice =
          rule_ == EvictionRule::oldest ? is_used(block, next) : bytes_of(block) < missing;
      return std::pair(second_choice, block.last_used);
    };
    for (Block& block : blocks_) {
      if (may_go(block, step, user) && (best == nullptr || rank(block) < rank(*best))) {
        best = &block;
      }
    }
    return best;
  }

  void evict(Block& block, StepId step, std::size_t missing) {
    block.away = evictions_.size();
    evictions_.push_back({.tensor = block.tensor,
                          .last_used = block.last_used,
                          .freed_for = step,
                          .back_for = {},
                          .sufficed = bytes_of(block) >= missing,
                          .again = block.was_away});
    gone_ += block.was_away ? 0 : 1;
    block.was_away = true;
    away_bytes_ += bytes_of(block);
  }

  const Request& request_;
  std::size_t bytes_;
  std::vector<std::size_t> live_;  // by StepId, with no tensor away
  EvictionRule rule_;
  std::vector<Block> blocks_;
  std::vector<Eviction> evictions_;
  std::size_t away_bytes_ = 0;
  std::size_t gone_ = 0;  // tensors that were away at least once
};

}  // namespace

std::vector<Eviction> replay_allocator(const Request& request, std::size_t bytes,
                                       std::span<const Stashed> tensors, EvictionRule rule) {
  return Replay(request, bytes, tensors, rule).run();
}

}  // namespace cnn::lms
