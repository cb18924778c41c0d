#include "tests/support/grid/grid.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "runtime/error.h"
#include "tests/support/grid/fiber.h"
#include "tests/support/grid/shared_memory.h"

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
constinit thread_local cnn::tests::grid::Extent threadIdx{};
constinit thread_local cnn::tests::grid::Extent blockIdx{};
constinit thread_local cnn::tests::grid::Extent blockDim{};
constinit thread_local cnn::tests::grid::Extent gridDim{};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

namespace cnn::tests::grid {

namespace {

// Of every device from sm_80 on.
constexpr std::size_t threads_per_block = 1024;
constexpr std::size_t shared_bytes_per_block = 163 << 10;
constexpr std::size_t parameter_bytes_per_launch = 4096;
constexpr unsigned largest_grid_yz = 65535;

Extent position(std::size_t index, const Extent& of) {
  return {static_cast<unsigned>(index % of.x), static_cast<unsigned>(index / of.x % of.y),
          static_cast<unsigned>(index / of.x / of.y)};
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

std::string text_of(const std::source_location& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line()) + " in " +
         where.function_name();
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::string_view(a.file_name()) == b.file_name();
}

// Unwinds a paused thread when its launch has failed.
struct Cancelled {};

enum class State : std::uint8_t { ready, at_block_barrier, at_warp_call, left };

struct Thread {
  Fiber fiber;
  State state = State::left;
  bool started = false;        // has run in this block
  std::source_location where;  // of the barrier it waits at
  WarpRequest request;         // while at_warp_call
  WarpAnswer answer;
  WarpClock clock{};
};

// One launch: the threads of the block that runs, and its shared memory.
class Run {
 public:
  Run(const Launch& launch, const std::function<void()>& body)
      : launch_(launch), body_(body), memory_(launch.shared_bytes) {
    for (std::size_t i = 0; i < launch.block.count(); ++i) {
      threads_.push_back(std::make_unique<Thread>());
    }
  }

  void run();

  void wait_at_block_barrier(std::source_location where) {
    Thread& self = *threads_[current_];
    self.where = where;
    pause_as(State::at_block_barrier);
  }
  WarpAnswer exchange(const WarpRequest& request);
  unsigned lane() const { return static_cast<unsigned>(current_ % warp_size); }
  void check_array(const SharedArray& array, std::size_t alignment) const;
  std::byte* touch(const SharedArray& array, std::int64_t index, Access access) {
    const Thread& self = *threads_[current_];
    const Moment now{.thread = static_cast<std::uint32_t>(current_),
                     .interval = interval_,
                     .clock = self.clock[lane()]};
    return memory_.touch(array, index, access, now, self.clock);
  }

 private:
  void run_block(std::size_t block);
  void run_ready(std::span<const std::size_t> order);
  void wake();
  void resume(std::size_t index);
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
  const std::function<void()> fiber_body_ = [this] { thread_body(); };
  SharedMemory memory_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::size_t current_ = 0;
  std::uint32_t interval_ = 0;  // barriers of the block so far
  bool cancelled_ = false;
  std::exception_ptr failure_;
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): what the builtins act on
constinit thread_local Run* active = nullptr;

Run& running() {
  check(active != nullptr, "a function of the device was called outside of a launch");
  return *active;
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
  memory_.reset();
  interval_ = 0;
  for (const auto& thread : threads_) {
    thread->state = State::ready;
    thread->started = false;
    thread->clock = {};
    thread->fiber.start(fiber_body_);
  }
  const std::vector<std::size_t> order = sequence(threads_.size(), launch_.order, block + 1);
  while (!all_left()) {
    run_ready(order);
    wake();
    if (failure_ != nullptr) {
      cancel(failure_);
    }
  }
}

// Lets those go on that have all met.
void Run::wake() {
  try {
    if (failure_ == nullptr && !all_left() && !release_warps() && !release_block()) {
      throw Error(why_stuck());
    }
  } catch (const Error&) {
    failure_ = std::current_exception();
  }
}

void Run::run_ready(std::span<const std::size_t> order) {
  for (const std::size_t index : order) {
    if (failure_ == nullptr && threads_[index]->state == State::ready) {
      resume(index);
    }
  }
}

void Run::resume(std::size_t index) {
  current_ = index;
  threadIdx = position(index, launch_.block);
  threads_[index]->started = true;
  threads_[index]->fiber.resume();
}

// What a fiber does for one block. Exceptions must not leave it: they would unwind into nothing.
void Run::thread_body() {
  try {
    body_();
  } catch (const Cancelled&) {  // NOLINT(bugprone-empty-catch): the launch has failed already
  } catch (...) {
    failure_ = std::current_exception();
  }
  threads_[current_]->state = State::left;
}

void Run::pause_as(State state) {
  Thread& self = *threads_[current_];
  self.state = state;
  self.fiber.pause();
  if (cancelled_) {
    throw Cancelled{};
  }
}

WarpAnswer Run::exchange(const WarpRequest& request) {
  Thread& self = *threads_[current_];
  check(
      (request.mask >> lane() & 1U) != 0,
      thread_name(current_) + " is not in the mask of its own warp call at " + text_of(request.at));
  self.request = request;
  self.where = request.at;
  pause_as(State::at_warp_call);
  return self.answer;
}

void Run::check_array(const SharedArray& array, std::size_t alignment) const {
  const std::size_t end =
      array.offset + static_cast<std::size_t>(array.count) * array.element_bytes;
  check(array.count >= 0 && end <= memory_.size(),
        "the shared array at " + text_of(array.where) + " ends at byte " + std::to_string(end) +
            " of " + std::to_string(memory_.size()) + " that the launch asked for");
  check(array.offset % alignment == 0, "the shared array at " + text_of(array.where) +
                                           " starts at byte " + std::to_string(array.offset) +
                                           ", not a multiple of " + std::to_string(alignment));
}

bool Run::all_left() const {
  return std::ranges::all_of(threads_, [](const auto& t) { return t->state == State::left; });
}

bool Run::release_warps() {
  bool any = false;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    any |= threads_[i]->state == State::at_warp_call && release_warp_of(i);
  }
  return any;
}

// The threads that this one's mask names, if all of them wait at the same call. Lanes beyond a
// block that is no multiple of a warp do not exist and are not waited for.
std::optional<std::vector<std::size_t>> Run::gathered(std::size_t index) const {
  const WarpRequest& wanted = threads_[index]->request;
  std::vector<std::size_t> members;
  const std::size_t first = index / warp_size * warp_size;
  for (std::size_t i = first; i < std::min(first + warp_size, threads_.size()); ++i) {
    if ((wanted.mask >> (i - first) & 1U) == 0) {
      continue;
    }
    const Thread& thread = *threads_[i];
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
    threads_[i]->state = State::ready;
  }
  return true;
}

// Only barriers order memory: CUDA promises nothing of the kind for shuffles and votes.
void Run::answer(std::span<const std::size_t> members) {
  unsigned ballot = 0;
  WarpClock joined{};
  for (const std::size_t i : members) {
    Thread& thread = *threads_[i];
    ballot |= (thread.request.predicate ? 1U : 0U) << (i % warp_size);
    if (thread.request.call == WarpCall::barrier) {
      ++thread.clock[i % warp_size];
      std::ranges::transform(joined, thread.clock, joined.begin(),
                             [](auto a, auto b) { return std::max(a, b); });
    }
  }
  for (const std::size_t i : members) {
    Thread& thread = *threads_[i];
    thread.answer.ballot = ballot;
    if (thread.request.call == WarpCall::barrier) {
      thread.clock = joined;
    } else if (thread.request.call == WarpCall::shuffle) {
      const std::size_t source = i / warp_size * warp_size + thread.request.source;
      check(std::ranges::find(members, source) != members.end(),
            thread_name(i) + " shuffles from lane " + std::to_string(thread.request.source) +
                ", which takes no part, at " + text_of(thread.where));
      thread.answer.value = threads_[source]->request.value;
    }
  }
}

bool Run::release_block() {
  const bool all_there = std::ranges::all_of(threads_, [&](const auto& t) {
    return t->state == State::at_block_barrier && same_place(t->where, threads_[0]->where);
  });
  if (!all_there) {
    return false;
  }
  ++interval_;
  for (const auto& thread : threads_) {
    thread->state = State::ready;
  }
  return true;
}

std::string Run::why_warp_is_stuck(std::size_t index) const {
  const Thread& waiting = *threads_[index];
  const std::size_t first = index / warp_size * warp_size;
  const std::string what =
      thread_name(index) + " waits at the warp call at " + text_of(waiting.where);
  for (std::size_t i = first; i < std::min(first + warp_size, threads_.size()); ++i) {
    const Thread& other = *threads_[i];
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

// Some threads wait and nothing can wake them.
std::string Run::why_stuck() const {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i]->state == State::at_warp_call) {
      return why_warp_is_stuck(i);
    }
  }
  const auto waiting = std::ranges::find_if(
      threads_, [](const auto& t) { return t->state == State::at_block_barrier; });
  const auto other = std::ranges::find_if(threads_, [&](const auto& t) {
    return t->state == State::left || !same_place(t->where, (*waiting)->where);
  });
  const auto name = [&](const auto& thread) {
    return thread_name(static_cast<std::size_t>(thread - threads_.begin()));
  };
  return name(waiting) + " waits at the barrier at " + text_of((*waiting)->where) + ", but " +
         name(other) +
         ((*other)->state == State::left ? " has left the kernel"
                                         : " waits at another at " + text_of((*other)->where));
}

// Unwinds every thread that is under way, so that nothing on its stack leaks, then rethrows.
void Run::cancel(std::exception_ptr failure) {
  cancelled_ = true;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i]->started && threads_[i]->state != State::left) {
      resume(i);
    }
  }
  std::rethrow_exception(std::move(failure));
}

void check_launch(const Launch& launch) {
  check(launch.grid.count() > 0 && launch.block.count() > 0, "a launch has no threads");
  check(launch.block.count() <= threads_per_block && launch.block.z <= 64,
        "a launch has " + std::to_string(launch.block.count()) +
            " threads a block; a device runs " + std::to_string(threads_per_block));
  check(launch.grid.x <= 0x7FFFFFFFU && launch.grid.y <= largest_grid_yz &&
            launch.grid.z <= largest_grid_yz,
        "a launch has more blocks than a device runs");
  check(launch.shared_bytes <= shared_bytes_per_block,
        "a launch asks for " + std::to_string(launch.shared_bytes) +
            " bytes of shared memory; a device gives " + std::to_string(shared_bytes_per_block));
  check(launch.parameter_bytes <= parameter_bytes_per_launch,
        "a launch has " + std::to_string(launch.parameter_bytes) +
            " bytes of parameters; a device takes " + std::to_string(parameter_bytes_per_launch));
}

}  // namespace

std::vector<Order> all_orders() {
  return {{.kind = Order::Kind::forward},
          {.kind = Order::Kind::reverse},
          {.kind = Order::Kind::shuffled, .seed = 1},
          {.kind = Order::Kind::shuffled, .seed = 2},
          {.kind = Order::Kind::shuffled, .seed = 3}};
}

std::string to_string(Order order) {
  switch (order.kind) {
    case Order::Kind::forward:
      return "forward";
    case Order::Kind::reverse:
      return "reverse";
    case Order::Kind::shuffled:
      break;
  }
  return "shuffled by seed " + std::to_string(order.seed);
}

Order order_of(const Stream& stream) {
  const auto* grid = dynamic_cast<const GridStream*>(&stream);
  return grid == nullptr ? Order{} : grid->order();
}

void run(const Launch& launch, const std::function<void()>& thread) {
  check_launch(launch);
  check(active == nullptr, "a kernel was launched from within a kernel");
  Run run(launch, thread);
  active = &run;
  try {
    run.run();
  } catch (const Error& error) {
    active = nullptr;
    const auto text = [](unsigned value) { return std::to_string(value); };
    throw Error("block (" + text(blockIdx.x) + ", " + text(blockIdx.y) + ", " + text(blockIdx.z) +
                    "): " + error.what(),
                error.where());
  } catch (...) {
    active = nullptr;
    throw;
  }
  active = nullptr;
}

void block_barrier(std::source_location where) { running().wait_at_block_barrier(where); }
WarpAnswer warp_exchange(const WarpRequest& request) { return running().exchange(request); }
unsigned lane_index() { return running().lane(); }
void check_array(const SharedArray& array, std::size_t alignment) {
  running().check_array(array, alignment);
}
std::byte* shared_bytes(const SharedArray& array, std::int64_t index, Access access) {
  return running().touch(array, index, access);
}

}  // namespace cnn::tests::grid
