// Tests the emulated grid itself: it finds defects of every kind and passes correct kernels in
// every order.

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>
#include <vector>

#include "runtime/cuda/launch.h"
#include "runtime/error.h"

namespace cnn::tests::grid {
namespace {

using cuda::launch;
using cuda::Shared;
using testing::HasSubstr;

constexpr unsigned every_lane = 0xFFFFFFFFU;

// Returns the message of the work's Error, or "" if it ends well.
std::string error_of(const std::function<void(Stream&)>& work, Order order = {}) {
  GridStream stream(order);
  try {
    work(stream);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Expects every order to reveal this defect.
void expect_found(const std::function<void(Stream&)>& work, const std::string& words) {
  for (const Order order : all_orders()) {
    EXPECT_THAT(error_of(work, order), HasSubstr(words)) << to_string(order);
  }
}

// --- correct kernels ---

__global__ void block_sums(const float* x, float* sums, int count) {
  const Shared<float> partial(0, 64);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  partial[thread] = i < count ? x[i] : 0.0F;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (thread < half) {
      partial[thread] += partial[thread + half];
    }
    __syncthreads();
  }
  if (thread == 0) {
    sums[blockIdx.x] = partial[0];
  }
}

TEST(Grid, ReducesAnArrayTheSameInEveryOrder) {
  std::vector<float> x(150);
  std::iota(x.begin(), x.end(), 1.0F);
  for (const Order order : all_orders()) {
    GridStream stream(order);
    std::vector<float> sums(3);
    launch(block_sums, 3, 64, 64 * sizeof(float), stream, x.data(), sums.data(), 150);
    EXPECT_THAT(sums, testing::ElementsAre(2080.0F, 6176.0F, 3069.0F)) << to_string(order);
  }
}

__global__ void transpose(const int* from, int* to) {
  const Shared<int> tile(0, 8 * 9);
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  tile[y * 9 + x] = from[y * 8 + x];
  __syncthreads();
  to[y * 8 + x] = tile[x * 9 + y];
}

TEST(Grid, TransposesATileTheSameInEveryOrder) {
  std::vector<int> from(64), expected(64);
  std::iota(from.begin(), from.end(), 0);
  for (std::size_t i = 0; i < 64; ++i) {
    expected[i % 8 * 8 + i / 8] = static_cast<int>(i);
  }
  for (const Order order : all_orders()) {
    GridStream stream(order);
    std::vector<int> to(64, -1);
    launch(transpose, 1, dim3(8, 8), std::size_t{288}, stream, from.data(), to.data());
    EXPECT_EQ(to, expected) << to_string(order);
  }
}

// Computes inclusive sums within each warp, then over the warps of the block.
__global__ void scan(int* values) {
  const Shared<int> totals(0, 4);
  const auto lane = threadIdx.x % 32;
  const auto warp = static_cast<int>(threadIdx.x / 32);
  int sum = values[threadIdx.x];
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(every_lane, sum, distance);
    sum += lane >= distance ? other : 0;
  }
  if (lane == 31) {
    totals[warp] = sum;
  }
  __syncthreads();
  for (int before = 0; before < warp; ++before) {
    sum += totals[before];
  }
  values[threadIdx.x] = sum;
}

TEST(Grid, ScansABlockTheSameInEveryOrder) {
  for (const Order order : all_orders()) {
    GridStream stream(order);
    std::vector<int> values(128, 1), expected(128);
    std::iota(expected.begin(), expected.end(), 1);
    launch(scan, 1, 128, 4 * sizeof(int), stream, values.data());
    EXPECT_EQ(values, expected) << to_string(order);
  }
}

// Passes each value to the next lane through shared memory, with barriers of the warp only.
__global__ void rotate_in_warp(int* values) {
  const Shared<int> slot(0, 64);
  const auto thread = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 3; ++round) {
    slot[thread] = values[thread];
    __syncwarp();
    values[thread] = slot[thread / 32 * 32 + (thread + 31) % 32];
    __syncwarp();
  }
}

TEST(Grid, LetsAWarpBarrierOrderItsWarp) {
  for (const Order order : all_orders()) {
    GridStream stream(order);
    std::vector<int> values(64);
    std::iota(values.begin(), values.end(), 0);
    launch(rotate_in_warp, 1, 64, 64 * sizeof(int), stream, values.data());
    EXPECT_EQ(values[0], 29) << to_string(order);
    EXPECT_EQ(values[3], 0);
    EXPECT_EQ(values[32], 61);
  }
}

__global__ void votes(unsigned* out) {
  const bool odd = threadIdx.x % 2 == 1;
  const unsigned ballot = __ballot_sync(every_lane, odd);
  const int any = __any_sync(every_lane, threadIdx.x == 7);
  const int all = __all_sync(every_lane, threadIdx.x < 32);
  const int none = __any_sync(every_lane, threadIdx.x > 31);
  if (threadIdx.x == 0) {
    out[0] = ballot;
    out[1] = static_cast<unsigned>(any * 4 + all * 2 + none);
  }
}

TEST(Grid, CountsVotes) {
  GridStream stream({});
  std::vector<unsigned> out(2);
  launch(votes, 1, 32, 0, stream, out.data());
  EXPECT_THAT(out, testing::ElementsAre(0xAAAAAAAAU, 6U));
}

__global__ void shuffles(int* out) {
  const auto lane = static_cast<int>(threadIdx.x);
  out[lane] = __shfl_xor_sync(every_lane, lane, 5);
  out[32 + lane] = __shfl_down_sync(every_lane, lane, 3);
  out[64 + lane] = __shfl_sync(every_lane, lane, 9, 8);
  out[96 + lane] = __shfl_down_sync(every_lane, lane, 6, 8);
}

TEST(Grid, ShufflesAsTheDeviceDoes) {
  GridStream stream({.kind = Order::Kind::reverse});
  std::vector<int> out(128);
  launch(shuffles, 1, 32, 0, stream, out.data());
  EXPECT_EQ(out[0], 5);
  EXPECT_EQ(out[31], 26);
  EXPECT_EQ(out[32 + 4], 7);
  EXPECT_EQ(out[32 + 30], 30);  // beyond the warp, a lane gets its own value
  EXPECT_EQ(out[64 + 20], 17);  // lane 9 % 8 of its group of 8
  EXPECT_EQ(out[96 + 1], 7);
  EXPECT_EQ(out[96 + 2], 2);  // beyond its group, a lane gets its own value
}

__global__ void histogram(const int* x, unsigned* counts, int* largest) {
  const Shared<int> local(0, 4);
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < 4) {
    local[thread] = 0;
  }
  __syncthreads();
  atomicAdd(&local[x[thread] % 4], 1);
  atomicMax(largest, x[thread]);
  __syncthreads();
  if (thread < 4) {
    atomicAdd(&counts[thread], static_cast<unsigned>(int{local[thread]}));
  }
}

TEST(Grid, CountsWithIntegerAtomics) {
  std::vector<int> x(64);
  std::iota(x.begin(), x.end(), 3);
  for (const Order order : all_orders()) {
    GridStream stream(order);
    std::vector<unsigned> counts(4);
    int largest = 0;
    launch(histogram, 2, 64, 4 * sizeof(int), stream, x.data(), counts.data(), &largest);
    EXPECT_THAT(counts, testing::Each(32U)) << to_string(order);
    EXPECT_EQ(largest, 66);
  }
}

__global__ void half_of_a_partial_warp(float* x, int count) {
  const unsigned mask = __ballot_sync(every_lane, static_cast<int>(threadIdx.x) < count);
  if (static_cast<int>(threadIdx.x) < count) {
    x[threadIdx.x] += __shfl_xor_sync(mask, x[threadIdx.x], 1);
  }
}

TEST(Grid, TakesMasksAndBlocksOfPartOfAWarp) {
  GridStream stream({});
  std::vector<float> x{1, 2, 3, 4, 5, 6};
  launch(half_of_a_partial_warp, 1, 6, 0, stream, x.data(), 4);
  EXPECT_THAT(x, testing::ElementsAre(3, 3, 7, 7, 5, 6));
}

__global__ void sixteen_bits(const __half* a, const __nv_bfloat16* b, float* out) {
  const __half2 pair = __halves2half2(a[0], a[1]);
  out[0] = __low2float(pair) + __high2float(pair);
  out[1] = __bfloat162float(b[0]);
  out[2] = __half2float(__float2half_rn(2049.0F));         // a tie rounds to the even 2048
  out[3] = __bfloat162float(__float2bfloat16_rn(257.0F));  // a tie rounds to the even 256
  out[4] = __half2float(__hadd(a[0], a[1]));
}

TEST(Grid, HasTheSixteenBitTypes) {
  GridStream stream({});
  const std::vector<__half> a{__float2half(1.5F), __float2half(-4.0F)};
  const std::vector<__nv_bfloat16> b{__float2bfloat16(3.0F)};
  std::vector<float> out(5);
  launch(sixteen_bits, 1, 1, 0, stream, a.data(), b.data(), out.data());
  EXPECT_THAT(out, testing::ElementsAre(-2.5F, 3.0F, 2048.0F, 256.0F, -2.5F));
}

// --- seeded defects ---

__global__ void missing_barrier(float* out) {
  const Shared<float> values(0, 32);
  const auto thread = static_cast<int>(threadIdx.x);
  values[thread] = 1;
  out[thread] = values[(thread + 1) % 32];
}

TEST(Grid, FindsAMissingBarrier) {
  std::vector<float> out(32);
  const auto work = [&](Stream& s) { launch(missing_barrier, 1, 32, 128, s, out.data()); };
  EXPECT_THAT(error_of(work), HasSubstr("block (0, 0, 0): thread (0, 0, 0) reads element 1 of "));
  EXPECT_THAT(error_of(work), HasSubstr("missing_barrier"));
  EXPECT_THAT(error_of(work, {.kind = Order::Kind::reverse}),
              HasSubstr("thread (31, 0, 0) reads element 0 of"));
}

__global__ void read_of_an_unordered_write(float* out) {
  const Shared<float> values(0, 32);
  const auto thread = static_cast<int>(threadIdx.x);
  values[thread] = 0;
  __syncthreads();
  values[thread] = 1;
  out[thread] = values[(thread + 1) % 32];
}

TEST(Grid, FindsAReadOfAnUnorderedWriteInEveryOrder) {
  std::vector<float> out(32);
  expect_found([&](Stream& s) { launch(read_of_an_unordered_write, 1, 32, 128, s, out.data()); },
               " with no barrier between");
}

__global__ void two_writers(float* out) {
  const Shared<float> values(0, 1);
  values[0] = static_cast<float>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = values[0];
}

TEST(Grid, FindsTwoWritersOfOneElement) {
  std::vector<float> out(8);
  expect_found([&](Stream& s) { launch(two_writers, 1, 8, 4, s, out.data()); },
               "wrote with no barrier between");
}

__global__ void overwrites_what_others_read(float* out) {
  const Shared<float> values(0, 2);
  if (threadIdx.x == 0) {
    values[0] = 1;
  }
  __syncthreads();
  out[threadIdx.x] = values[0];
  if (threadIdx.x == 0) {
    values[0] = 2;
  }
}

TEST(Grid, FindsAWriteOfWhatOthersReadInTheSameInterval) {
  std::vector<float> out(8);
  const auto work = [&](Stream& s) { launch(overwrites_what_others_read, 1, 8, 8, s, out.data()); };
  expect_found(work, "with no barrier between");
  EXPECT_THAT(error_of(work, {.kind = Order::Kind::reverse}),
              HasSubstr("thread (0, 0, 0) writes element 0"));
}

__global__ void missing_warp_barrier(int* out) {
  const Shared<int> slot(0, 32);
  const auto lane = static_cast<int>(threadIdx.x);
  slot[lane] = lane;
  __syncthreads();
  slot[lane] = int{slot[lane]} + 1;
  // Synchronises the lanes, but orders no memory accesses.
  const int anything = __shfl_xor_sync(every_lane, lane, 1);
  out[lane] = int{slot[lane ^ 1]} + anything;
}

TEST(Grid, FindsAMissingWarpBarrier) {
  std::vector<int> out(32);
  expect_found([&](Stream& s) { launch(missing_warp_barrier, 1, 32, 128, s, out.data()); },
               "with no barrier between");
}

__global__ void warp_barrier_across_warps(int* out) {
  const Shared<int> slot(0, 64);
  const auto thread = static_cast<int>(threadIdx.x);
  slot[thread] = thread;
  __syncwarp();
  out[thread] = slot[63 - thread];
}

TEST(Grid, FindsAnExchangeBetweenWarpsWithAWarpBarrierOnly) {
  std::vector<int> out(64);
  expect_found([&](Stream& s) { launch(warp_barrier_across_warps, 1, 64, 256, s, out.data()); },
               "reads element");
}

__global__ void indexes_from(int first) {
  const Shared<float> values(0, 8);
  values[static_cast<int>(threadIdx.x) + first] = 1;
}

TEST(Grid, FindsAnIndexOutsideOfASharedArray) {
  expect_found([](Stream& s) { launch(indexes_from, 1, 8, 64, s, 1); }, "writes element 8 of");
  expect_found([](Stream& s) { launch(indexes_from, 1, 8, 64, s, -1); }, "writes element -1 of");
  expect_found([](Stream& s) { launch(indexes_from, 1, 8, 16, s, 0); },
               "ends at byte 32 of 16 that the launch asked for");
}

__global__ void misaligned() { const Shared<double> values(4, 1); }

TEST(Grid, FindsAMisalignedSharedArray) {
  expect_found([](Stream& s) { launch(misaligned, 1, 1, 64, s); },
               "starts at byte 4, not a multiple of 8");
}

__global__ void reads_what_nobody_wrote(float* out) {
  const Shared<float> values(0, 4);
  if (threadIdx.x < 3) {
    values[static_cast<int>(threadIdx.x)] = 1;
  }
  __syncthreads();
  out[threadIdx.x] = values[static_cast<int>(threadIdx.x)];
}

TEST(Grid, FindsAReadOfWhatNobodyWrote) {
  std::vector<float> out(4);
  expect_found([&](Stream& s) { launch(reads_what_nobody_wrote, 1, 4, 16, s, out.data()); },
               "thread (3, 0, 0) reads element 3 of");
}

__global__ void keeps_memory_over_blocks(float* out) {
  const Shared<float> values(0, 1);
  if (blockIdx.x == gridDim.x - 1) {
    values[0] = 1;
  }
  out[blockIdx.x] = values[0];
}

TEST(Grid, GivesEachBlockFreshSharedMemory) {
  std::vector<float> out(3);
  expect_found([&](Stream& s) { launch(keeps_memory_over_blocks, 3, 1, 4, s, out.data()); },
               "which no thread of this block has written");
}

__global__ void divergent_barrier() {
  if (threadIdx.x < 4) {  // NOLINT(bugprone-branch-clone): the two barriers are intended
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void leaves_early() {
  if (threadIdx.x == 5) {
    return;
  }
  __syncthreads();
}

TEST(Grid, FindsBarriersThatOnlySomeThreadsReach) {
  expect_found([](Stream& s) { launch(divergent_barrier, 1, 8, 0, s); }, "waits at another at");
  expect_found([](Stream& s) { launch(leaves_early, 1, 8, 0, s); },
               "thread (5, 0, 0) has left the kernel");
}

__global__ void lane_leaves_early(int* out) {
  if (threadIdx.x == 31) {
    return;
  }
  out[threadIdx.x] = __shfl_down_sync(every_lane, 1, 1);
}

__global__ void mask_without_the_source(int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_xor_sync(0xFFFFU, 1, 16);
  }
}

__global__ void caller_outside_of_its_mask() { __syncwarp(1U); }

TEST(Grid, FindsWarpCallsThatMissALane) {
  std::vector<int> out(32);
  expect_found([&](Stream& s) { launch(lane_leaves_early, 1, 32, 0, s, out.data()); },
               "for thread (31, 0, 0), which has left the kernel");
  expect_found([&](Stream& s) { launch(mask_without_the_source, 1, 32, 0, s, out.data()); },
               ", which takes no part");
  expect_found([](Stream& s) { launch(caller_outside_of_its_mask, 1, 2, 0, s); },
               "thread (1, 0, 0) is not in the mask");
}

// The last thread to write decides the value. Even without the race detector (see
// global_memory_test), two orders give different results.
__global__ void race_in_global_memory(int* out) { *out = static_cast<int>(threadIdx.x); }

TEST(Grid, GivesRacesInGlobalMemoryOtherResultsInOtherOrders) {
  int shuffled = -1, reverse = -1;
  GridStream first({.kind = Order::Kind::shuffled, .seed = 1}), second({Order::Kind::reverse});
  launch(race_in_global_memory, 1, 8, 0, first, &shuffled);
  launch(race_in_global_memory, 1, 8, 0, second, &reverse);
  EXPECT_NE(shuffled, 0);
  EXPECT_EQ(reverse, 0);
}

__global__ void nothing() {}

TEST(Grid, RefusesWhatADeviceWouldRefuse) {
  expect_found([](Stream& s) { launch(nothing, 1, 1025, 0, s); }, "1025 threads a block");
  expect_found([](Stream& s) { launch(nothing, 0, 32, 0, s); }, "no threads");
  expect_found([](Stream& s) { launch(nothing, dim3(1, 65536), 32, 0, s); }, "more blocks");
  expect_found([](Stream& s) { launch(nothing, 1, 32, 166913, s); },
               "166913 bytes of shared memory");
}

struct LargeParameter {
  std::array<std::byte, 4097> bytes{};
};
__global__ void takes_a_large_parameter(LargeParameter /*parameter*/) {}

TEST(Grid, RefusesMoreParametersThanADeviceTakes) {
  expect_found([](Stream& s) { launch(takes_a_large_parameter, 1, 1, 0, s, LargeParameter{}); },
               "4097 bytes of parameters");
}

TEST(Grid, GoesOnAfterAFailedLaunch) {
  GridStream stream({});
  EXPECT_THROW(launch(leaves_early, 1, 8, 0, stream), Error);
  EXPECT_NO_THROW(launch(nothing, 2, 8, 0, stream));
}

}  // namespace
}  // namespace cnn::tests::grid
