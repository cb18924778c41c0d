// Synchronises the threads of a block and explains deadlocks.

#include <algorithm>

#include "runtime/error.h"
#include "tests/support/grid/grid_run.h"

namespace cnn::tests::grid {

namespace {

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::string_view(a.file_name()) == b.file_name();
}

}  // namespace

std::string text_of(const std::source_location& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line()) + " in " +
         where.function_name();
}

bool Run::all_left() const {
  return std::ranges::all_of(threads_, [](const Thread& t) { return t.state == State::left; });
}

bool Run::release_warps() {
  bool any = false;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    any |= threads_[i].state == State::at_warp_call && release_warp_of(i);
  }
  return any;
}

// Returns the threads in this thread's mask if all of them wait at the same call. In a partial
// warp, the missing lanes do not count.
std::optional<std::vector<std::size_t>> Run::gathered(std::size_t index) const {
  const WarpRequest& wanted = threads_[index].request;
  std::vector<std::size_t> members;
  const std::size_t first = index / warp_size * warp_size;
  for (std::size_t i = first; i < std::min(first + warp_size, threads_.size()); ++i) {
    if ((wanted.mask >> (i - first) & 1U) == 0) {
      continue;
    }
    const Thread& thread = threads_[i];
    if (thread.state != State::at_warp_call || thread.request.mask != wanted.mask ||
        thread.request.call != wanted.call || !same_place(thread.request.at, wanted.at)) {
      return std::nullopt;
    }
    members.push_back(i);
  }
  return members;
}

bool Run::release_warp_of(std::size_t index) {
  const auto members = gathered(index);
  if (!members) {
    return false;
  }
  answer(*members);
  for (const std::size_t i : *members) {
    threads_[i].state = State::ready;
  }
  return true;
}

// Only barriers order memory; CUDA guarantees no order for shuffles and votes.
void Run::answer(std::span<const std::size_t> members) {
  unsigned ballot = 0;
  WarpClock joined{};
  for (const std::size_t i : members) {
    Thread& thread = threads_[i];
    ballot |= (thread.request.predicate ? 1U : 0U) << (i % warp_size);
    if (thread.request.call == WarpCall::barrier) {
      ++thread.clock[i % warp_size];
      std::ranges::transform(joined, thread.clock, joined.begin(),
                             [](auto a, auto b) { return std::max(a, b); });
    }
  }
  for (const std::size_t i : members) {
    Thread& thread = threads_[i];
    thread.answer.ballot = ballot;
    if (thread.request.call == WarpCall::barrier) {
      thread.clock = joined;
    } else if (thread.request.call == WarpCall::shuffle) {
      const std::size_t source = i / warp_size * warp_size + thread.request.source;
      if (std::ranges::find(members, source) == members.end()) {
        throw Error(thread_name(i) + " shuffles from lane " +
                    std::to_string(thread.request.source) + ", which takes no part, at " +
                    text_of(thread.where));
      }
      thread.answer.value = threads_[source].request.value;
    }
  }
}

bool Run::release_block() {
  const bool all_there = std::ranges::all_of(threads_, [&](const Thread& t) {
    return t.state == State::at_block_barrier && same_place(t.where, threads_[0].where);
  });
  if (!all_there) {
    return false;
  }
  ++interval_;
  for (Thread& thread : threads_) {
    thread.state = State::ready;
  }
  return true;
}

std::string Run::why_warp_is_stuck(std::size_t index) const {
  const Thread& waiting = threads_[index];
  const std::size_t first = index / warp_size * warp_size;
  std::string what = thread_name(index) + " waits at the warp call at " + text_of(waiting.where);
  for (std::size_t i = first; i < std::min(first + warp_size, threads_.size()); ++i) {
    const Thread& other = threads_[i];
    const bool meets = other.state == State::at_warp_call &&
                       same_place(other.where, waiting.where) &&
                       other.request.mask == waiting.request.mask;
    if ((waiting.request.mask >> (i - first) & 1U) != 0 && !meets) {
      return what + " for " + thread_name(i) +
             (other.state == State::left ? ", which has left the kernel"
                                         : ", which waits at " + text_of(other.where));
    }
  }
  return what;
}

// Explains a deadlock, in which some threads wait and nothing can wake them.
std::string Run::why_stuck() const {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].state == State::at_warp_call) {
      return why_warp_is_stuck(i);
    }
  }
  const auto waiting = std::ranges::find_if(
      threads_, [](const Thread& t) { return t.state == State::at_block_barrier; });
  const auto other = std::ranges::find_if(threads_, [&](const Thread& t) {
    return t.state == State::left || !same_place(t.where, waiting->where);
  });
  const auto name = [&](const auto& thread) {
    return thread_name(static_cast<std::size_t>(thread - threads_.begin()));
  };
  return name(waiting) + " waits at the barrier at " + text_of(waiting->where) + ", but " +
         name(other) +
         (other->state == State::left ? " has left the kernel"
                                      : " waits at another at " + text_of(other->where));
}

}  // namespace cnn::tests::grid
