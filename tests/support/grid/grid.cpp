#include "tests/support/grid/grid.h"

#include "runtime/error.h"
#include "tests/support/grid/address_check.h"
#include "tests/support/grid/grid_run.h"

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
constinit thread_local cnn::tests::grid::Extent threadIdx{};
constinit thread_local cnn::tests::grid::Extent blockIdx{};
constinit thread_local cnn::tests::grid::Extent blockDim{};
constinit thread_local cnn::tests::grid::Extent gridDim{};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

namespace cnn::tests::grid {

namespace {

// The limits of compute capability 8.0. Later capabilities have at least these, except that 8.6 and
// 8.9 have less shared memory.
constexpr std::size_t threads_per_block = 1024;
constexpr std::size_t shared_bytes_per_block = 163 << 10;
constexpr std::size_t parameter_bytes_per_launch = 4096;
constexpr unsigned largest_grid_yz = 65535;

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the builtins act on it
constinit thread_local Run* active = nullptr;

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): hooks have no state
constinit thread_local bool seen = false;

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): it belongs to the run
constinit thread_local AddressCheck* active_check = nullptr;

Run& running() {
  check(active != nullptr, "a function of the device was called outside of a launch");
  return *active;
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

void set_address_check(AddressCheck* check) { active_check = check; }
AddressCheck* address_check() { return active_check; }

bool sees_global_memory() { return seen; }
void block_barrier(std::source_location where) { running().wait_at_block_barrier(where); }
WarpAnswer warp_exchange(const WarpRequest& request) { return running().exchange(request); }
unsigned lane_index() { return running().lane(); }
void check_array(const SharedArray& array, std::size_t alignment) {
  running().check_array(array, alignment);
}
std::byte* shared_bytes(const SharedArray& array, std::int64_t index, Access access) {
  return running().touch(array, index, access);
}

void observe(const void* at, std::size_t bytes, Access access) {
  if (active != nullptr) {
    seen = true;
    active->observe(static_cast<const std::byte*>(at), bytes, access);
  }
}

}  // namespace cnn::tests::grid
