#include "tests/support/grid/grid_run.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "runtime/error.h"
#include "tests/support/grid/address_check.h"

namespace cnn::tests::grid {

namespace {

Extent position(std::size_t index, const Extent& extent) {
  return {static_cast<unsigned>(index % extent.x),
          static_cast<unsigned>(index / extent.x % extent.y),
          static_cast<unsigned>(index / extent.x / extent.y)};
}

std::vector<std::size_t> sequence(std::size_t count, Order order, std::size_t salt) {
  std::vector<std::size_t> result(count);
  std::iota(result.begin(), result.end(), std::size_t{0});
  if (order.kind == Order::Kind::reverse) {
    std::ranges::reverse(result);
  } else if (order.kind == Order::Kind::shuffled) {
    std::ranges::shuffle(result, std::mt19937_64(order.seed * 7919 + salt));
  }
  return result;
}

// Thrown to unwind a paused thread after its launch has failed.
struct Cancelled {};

// All launches share these fibers, because making their stacks takes longer than most kernels.
std::vector<std::unique_ptr<Fiber>>& fiber_pool() {
  thread_local std::vector<std::unique_ptr<Fiber>> pool;
  return pool;
}

}  // namespace

Run::Run(const Launch& launch, const std::function<void()>& body)
    : launch_(launch), body_(body), memory_(launch.shared_bytes), threads_(launch.block.count()) {
  for (const auto& fiber : fiber_pool()) {
    idle_.push_back(fiber.get());
  }
}

void Run::wait_at_block_barrier(std::source_location where) {
  Thread& self = threads_[current_];
  self.where = where;
  pause_as(State::at_block_barrier);
}

Moment Run::now() const {
  return {.thread = static_cast<std::uint32_t>(current_),
          .interval = interval_,
          .clock = threads_[current_].clock[lane()]};
}

std::byte* Run::touch(const SharedArray& array, std::int64_t index, Access access) {
  return memory_.touch(array, index, access, now(), threads_[current_].clock);
}

// Must not throw, so the launch fails when this thread pauses or ends.
void Run::observe(const std::byte* at, std::size_t bytes, Access access) {
  const Thread& self = threads_[current_];
  if (failure_ != nullptr || memory_.contains(at) || self.fiber->has_on_stack(at)) {
    return;
  }
  if (AddressCheck* const check = address_check()) {
    const std::string why = check->why_not(at, bytes, access);
    if (!why.empty()) {
      failure_ = std::make_exception_ptr(
          Error(thread_name(current_) + " " + std::string(verb(access)) + " " + why));
      return;
    }
  }
  if (launch_.order.kind != Order::Kind::forward) {
    return;
  }
  const GlobalMemory::Race* race = global_.touch(at, bytes, access, {block_, now()}, self.clock);
  if (race == nullptr) {
    return;
  }
  const Extent block = position(race->earlier.block, launch_.grid);
  const std::string where = race->earlier.block == block_
                                ? " with no barrier between"
                                : " in block (" + std::to_string(block.x) + ", " +
                                      std::to_string(block.y) + ", " + std::to_string(block.z) +
                                      ") of the same launch";
  failure_ = std::make_exception_ptr(
      Error(thread_name(current_) + " " + std::string(verb(access)) + " global memory that " +
            thread_name(race->earlier.moment.thread) + (race->wrote ? " wrote" : " read") + where));
}

void Run::run() {
  blockDim = launch_.block;
  gridDim = launch_.grid;
  for (const std::size_t block : sequence(launch_.grid.count(), launch_.order, 0)) {
    run_block(block);
  }
}

void Run::run_block(std::size_t block) {
  blockIdx = position(block, launch_.grid);
  block_ = static_cast<std::uint32_t>(block);
  memory_.reset();
  interval_ = 0;
  for (Thread& thread : threads_) {
    thread = {};
    thread.state = State::ready;
  }
  order_ = sequence(threads_.size(), launch_.order, block + 1);
  while (!all_left()) {
    run_ready();
    wake();
    if (failure_ != nullptr) {
      cancel(failure_);
    }
  }
}

// Wakes the threads whose barrier or warp call is complete.
void Run::wake() {
  try {
    if (failure_ == nullptr && !all_left() && !release_warps() && !release_block()) {
      throw Error(why_stuck());
    }
  } catch (const Error&) {
    failure_ = std::current_exception();
  }
}

void Run::run_ready() {
  for (next_ = 0; next_ < order_.size() && failure_ == nullptr;) {
    const std::size_t index = order_[next_++];
    Thread& thread = threads_[index];
    if (thread.state == State::ready) {
      if (thread.fiber == nullptr) {
        thread.fiber = idle_fiber();
        thread.fiber->start(fiber_body_);
      }
      enter(index);
      thread.fiber->resume();
    }
  }
}

Fiber* Run::idle_fiber() {
  if (idle_.empty()) {
    idle_.push_back(fiber_pool().emplace_back(std::make_unique<Fiber>()).get());
  }
  Fiber* const fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Run::enter(std::size_t index) {
  current_ = index;
  threadIdx = position(index, launch_.block);
}

// The body of a fiber. It runs a thread and, if that ends without a pause, the next one, so that
// kernels without barriers need no switch per thread.
void Run::work() {
  Fiber* const self = threads_[current_].fiber;
  do {
    thread_body();
  } while (failure_ == nullptr && begin_next(self));
  idle_.push_back(self);
}

// Continues on this fiber with the next thread if that has not begun. Returns whether it did.
bool Run::begin_next(Fiber* fiber) {
  while (next_ < order_.size() && threads_[order_[next_]].state != State::ready) {
    ++next_;
  }
  if (next_ == order_.size() || threads_[order_[next_]].fiber != nullptr) {
    return false;
  }
  threads_[order_[next_]].fiber = fiber;
  enter(order_[next_++]);
  return true;
}

// No exception may leave a fiber, because nothing could catch it.
void Run::thread_body() {
  try {
    body_();
  } catch (const Cancelled&) {  // NOLINT(bugprone-empty-catch): the launch has failed already
  } catch (...) {
    failure_ = std::current_exception();
  }
  threads_[current_].state = State::left;
}

void Run::pause_as(State state) {
  Thread& self = threads_[current_];
  self.state = state;
  self.fiber->pause();
  if (cancelled_) {
    throw Cancelled{};
  }
}

WarpAnswer Run::exchange(const WarpRequest& request) {
  Thread& self = threads_[current_];
  if ((request.mask >> lane() & 1U) == 0) {
    throw Error(thread_name(current_) + " is not in the mask of its own warp call at " +
                text_of(request.at));
  }
  self.request = request;
  self.where = request.at;
  pause_as(State::at_warp_call);
  return self.answer;
}

void Run::check_array(const SharedArray& array, std::size_t alignment) const {
  const std::size_t end =
      array.offset + static_cast<std::size_t>(array.count) * array.element_bytes;
  // Composes the text only on failure, because every use of an array makes these checks.
  if (array.count < 0 || end > memory_.size()) {
    throw Error("the shared array at " + text_of(array.where) + " ends at byte " +
                std::to_string(end) + " of " + std::to_string(memory_.size()) +
                " that the launch asked for");
  }
  if (array.offset % alignment != 0) {
    throw Error("the shared array at " + text_of(array.where) + " starts at byte " +
                std::to_string(array.offset) + ", not a multiple of " + std::to_string(alignment));
  }
}

// Unwinds all started threads, so that nothing on their stacks leaks, and then rethrows.
void Run::cancel(std::exception_ptr failure) {
  cancelled_ = true;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].fiber != nullptr && threads_[i].state != State::left) {
      enter(i);
      threads_[i].fiber->resume();
    }
  }
  std::rethrow_exception(std::move(failure));
}

}  // namespace cnn::tests::grid
