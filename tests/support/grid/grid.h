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

// Emulates the grid of a CUDA launch on one host thread. Blocks run one after another; the threads
// of a block are fibers that synchronise at barriers, shuffles and votes. Undefined behaviour of
// CUDA throws Error: exchange through shared memory without a barrier, reads of unwritten shared
// memory, accesses outside shared memory, and barriers that only some threads reach. Launches in
// forward order also detect races in global memory (see global_memory.h).
namespace cnn::tests::grid {

struct Extent {
  unsigned x = 1, y = 1, z = 1;
  std::size_t count() const { return std::size_t{x} * y * z; }
};

// The order in which the blocks of a grid run, and the threads of a block between two barriers. A
// correct kernel gives the same bits in every order.
struct Order {
  enum class Kind : std::uint8_t { forward, reverse, shuffled };
  Kind kind = Kind::forward;
  std::uint64_t seed = 0;  // for shuffled
};
std::vector<Order> all_orders();  // forward, reverse and three shuffles
std::string to_string(Order order);

// A stream that runs everything at once on the calling thread, and kernels in its order. On any
// other stream, kernels run in forward order.
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

// Runs `thread` once for each thread of the grid. Throws Error for a launch that a device would
// refuse and for the errors listed at the top of this file; rethrows exceptions of threads.
void run(const Launch& launch, const std::function<void()>& thread);

// Running threads use the following functions by way of launch.h.

inline constexpr unsigned warp_size = 32;

// Returns when every thread of the block has called it from the same place.
void block_barrier(std::source_location where);

// The calls that lanes of a warp make together. All lanes in the mask make the call from the same
// place with the same mask.
enum class WarpCall : std::uint8_t { barrier, shuffle, vote };
using LaneValue = std::array<std::byte, 16>;
struct WarpRequest {
  WarpCall call{};
  unsigned mask = 0;
  LaneValue value{};        // of a shuffle: the value for other lanes
  unsigned source = 0;      // of a shuffle: the lane to read
  bool predicate = false;   // operand of a vote
  std::source_location at;  // source location of the call
};
struct WarpAnswer {
  LaneValue value{};    // result of a shuffle
  unsigned ballot = 0;  // result of a vote: the lanes with a true predicate
};
WarpAnswer warp_exchange(const WarpRequest& request);
unsigned lane_index();

// An array in the block's shared memory.
struct SharedArray {
  std::size_t offset = 0;  // in bytes
  std::int64_t count = 0;
  std::size_t element_bytes = 0;
  std::source_location where;  // its declaration, which identifies the kernel
};
enum class Access : std::uint8_t { read, write, atomic };

// Throws Error if the array does not fit the shared memory of the launch.
void check_array(const SharedArray& array, std::size_t alignment);
// Returns the bytes of one element after the checks for this access.
std::byte* shared_bytes(const SharedArray& array, std::int64_t index, Access access);
// Reports an access by plain pointers just before a thread makes it. Memory that is neither the
// thread's stack nor shared memory is global. In forward order, a race there fails the launch.
// Outside of launches the function does nothing.
void observe(const void* at, std::size_t bytes, Access access);

}  // namespace cnn::tests::grid

// CUDA's names for a thread's position.
// NOLINTBEGIN(readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)
extern constinit thread_local cnn::tests::grid::Extent threadIdx;
extern constinit thread_local cnn::tests::grid::Extent blockIdx;
extern constinit thread_local cnn::tests::grid::Extent blockDim;
extern constinit thread_local cnn::tests::grid::Extent gridDim;
// NOLINTEND(readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)
