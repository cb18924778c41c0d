#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "tests/support/grid/fiber.h"
#include "tests/support/grid/global_memory.h"
#include "tests/support/grid/grid.h"
#include "tests/support/grid/shared_memory.h"

namespace cnn::tests::grid {

enum class State : std::uint8_t { ready, at_block_barrier, at_warp_call, left };

struct Thread {
  Fiber* fiber = nullptr;  // null unless the thread is running or paused
  State state = State::left;
  std::source_location where;  // the barrier at which it waits
  WarpRequest request;         // valid in state at_warp_call
  WarpAnswer answer;
  WarpClock clock{};
};

// One launch with the threads of the current block and its shared memory.
class Run {
 public:
  Run(const Launch& launch, const std::function<void()>& body);

  void run();

  // The threads call the following functions.
  void wait_at_block_barrier(std::source_location where);
  WarpAnswer exchange(const WarpRequest& request);
  unsigned lane() const { return static_cast<unsigned>(current_ % warp_size); }
  void check_array(const SharedArray& array, std::size_t alignment) const;
  std::byte* touch(const SharedArray& array, std::int64_t index, Access access);
  void observe(const std::byte* at, std::size_t bytes, Access access);

 private:
  void run_block(std::size_t block);
  void run_ready();
  void wake();
  Fiber* idle_fiber();
  void enter(std::size_t index);
  void work();
  bool begin_next(Fiber* fiber);
  Moment now() const;
  void thread_body();
  void pause_as(State state);
  bool release_warps();
  bool release_block();
  bool release_warp_of(std::size_t index);
  std::optional<std::vector<std::size_t>> gathered(std::size_t index) const;
  void answer(std::span<const std::size_t> members);
  bool all_left() const;
  std::string why_stuck() const;
  std::string why_warp_is_stuck(std::size_t index) const;
  void cancel(std::exception_ptr failure);

  const Launch& launch_;
  const std::function<void()>& body_;
  const std::function<void()> fiber_body_ = [this] { work(); };
  SharedMemory memory_;
  GlobalMemory global_;
  std::vector<Thread> threads_;
  std::vector<Fiber*> idle_;
  std::vector<std::size_t> order_;  // order of the block's threads
  std::size_t next_ = 0;            // index in order_ of the thread after the current one
  std::size_t current_ = 0;
  std::uint32_t block_ = 0;     // the running block
  std::uint32_t interval_ = 0;  // number of the block's barriers so far
  bool cancelled_ = false;
  std::exception_ptr failure_;
};

std::string text_of(const std::source_location& where);

}  // namespace cnn::tests::grid
