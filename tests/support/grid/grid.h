#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/device.h"

// The grid of a CUDA launch on one host thread: blocks run one after another, the threads of a
// block are fibers that meet at barriers, shuffles and votes. Whatever CUDA leaves undefined is an
// Error here: exchange through shared memory without a barrier, reading what nobody wrote, leaving
// shared memory, barriers that only some threads reach. So is, in launches that run forward, what
// races in global memory, between blocks or within one (see global_memory.h).
namespace cnn::tests::grid {

struct Extent {
  unsigned x = 1, y = 1, z = 1;
  std::size_t count() const { return std::size_t{x} * y * z; }
};

// The order in which the blocks of a grid, and the threads of a block between two barriers, run. A
// correct kernel computes the same bits in every order.
struct Order {
  enum class Kind : std::uint8_t { forward, reverse, shuffled };
  Kind kind = Kind::forward;
  std::uint64_t seed = 0;  // of shuffled
};
std::vector<Order> all_orders();  // forward, reverse and three shuffles
std::string to_string(Order order);

// Does everything at once, on the calling thread. Kernels started on it run in its order; on any
// other stream they run forward.
class GridStream final : public Stream {
 public:
  explicit GridStream(Order order) : order_(order) {}
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void host(std::function<void()> work) override { work(); }
  void record(Event& /*event*/) override {}
  void wait(Event& /*event*/) override {}
  void synchronize() override {}
  Order order() const { return order_; }

 private:
  Order order_;
};
Order order_of(const Stream& stream);

struct Launch {
  Extent grid, block;
  std::size_t shared_bytes = 0;
  std::size_t parameter_bytes = 0;
  Order order;
};

// Runs `thread` once for each thread of the grid. Throws Error on a launch that a device would
// refuse, on what the file's head lists, and what a thread throws.
void run(const Launch& launch, const std::function<void()>& thread);

// The rest is for the running threads, by way of launch.h.

inline constexpr unsigned warp_size = 32;

// Returns when every thread of the block has called it from the same place.
void block_barrier(std::source_location where);

// The calls that the lanes of a warp make together. All lanes in the mask call it from one place,
// with one mask.
enum class WarpCall : std::uint8_t { barrier, shuffle, vote };
using LaneValue = std::array<std::byte, 16>;
struct WarpRequest {
  WarpCall call{};
  unsigned mask = 0;
  LaneValue value{};        // of a shuffle: what the others may read
  unsigned source = 0;      // of a shuffle: the lane to read
  bool predicate = false;   // of a vote
  std::source_location at;  // where the thread called it
};
struct WarpAnswer {
  LaneValue value{};    // of a shuffle
  unsigned ballot = 0;  // of a vote: the lanes with a true predicate
};
WarpAnswer warp_exchange(const WarpRequest& request);
unsigned lane_index();

// An array in the block's shared memory.
struct SharedArray {
  std::size_t offset = 0;  // bytes
  std::int64_t count = 0;
  std::size_t element_bytes = 0;
  std::source_location where;  // of its declaration: names the kernel
};
enum class Access : std::uint8_t { read, write, atomic };

// Throws Error if the array does not fit the shared memory of the launch.
void check_array(const SharedArray& array, std::size_t alignment);
// The bytes of one element, after the checks that this access needs.
std::byte* shared_bytes(const SharedArray& array, std::int64_t index, Access access);
// Any access of a thread by plain pointers, just before it happens. Memory that is not its stack or
// shared memory is global: a race there fails the launch, if blocks run in forward order. Outside
// of launches it does nothing.
void observe(const void* at, std::size_t bytes, Access access);

}  // namespace cnn::tests::grid

// CUDA's names for where a thread stands.
// NOLINTBEGIN(readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)
extern constinit thread_local cnn::tests::grid::Extent threadIdx;
extern constinit thread_local cnn::tests::grid::Extent blockIdx;
extern constinit thread_local cnn::tests::grid::Extent blockDim;
extern constinit thread_local cnn::tests::grid::Extent gridDim;
// NOLINTEND(readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)
