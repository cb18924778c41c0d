#include "runtime/cuda/device.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cpu/device.h"
#include "runtime/error.h"
#include "tests/runtime/cuda/kernels.h"
#include "tests/runtime/cuda/on_device.h"

namespace cnn::cuda {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t long_spin = 20'000'000;  // clock cycles, about 10 ms

TEST(CudaDevices, AreCountedOrTheReasonIsToldWhyThereAreNone) {
  const DeviceCount found = count_devices();
  EXPECT_EQ(found.why_none.empty(), found.devices > 0);
  if (found.devices == 0) {
    try {
      const CudaDevice none;
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "no CUDA device: " + found.why_none);
    }
  }
}

TEST(CudaDevices, HaveARuntimeVersionWithoutADevice) {
  EXPECT_GE(std::stoi(runtime_version()), 12);
  EXPECT_NE(runtime_version().find('.'), std::string::npos);
}

TEST(CudaDevices, WriteTheirUuidAsToolsDo) {
  cudaUUID_t uuid{};
  for (int i = 0; i < 16; ++i) {
    uuid.bytes[i] = static_cast<char>(0x11 * i);
  }
  EXPECT_EQ(uuid_text(uuid), "00112233-4455-6677-8899-aabbccddeeff");
}

class CudaDeviceTest : public tests::OnCudaDevice {
 protected:
  // Returns numbers in pinned host memory, from which the device copies fastest.
  Buffer pinned(std::span<const std::int32_t> values) {
    Buffer buffer = device().allocate_host(values.size_bytes());
    std::memcpy(buffer.data(), values.data(), values.size_bytes());
    return buffer;
  }
  static std::int32_t* ints(const Buffer& buffer) {
    return reinterpret_cast<std::int32_t*>(buffer.data());
  }
};

TEST_F(CudaDeviceTest, TellsWhatItIs) {
  EXPECT_FALSE(device().name().empty());
  EXPECT_GE(device().facts().major, 8);
  EXPECT_GT(device().facts().multiprocessors, 0);
  EXPECT_GT(device().memory_bytes(), 0U);
  EXPECT_LE(device().memory_bytes(), device().facts().memory_bytes);
}

TEST_F(CudaDeviceTest, CopiesInEveryDirection) {
  const std::vector<std::int32_t> numbers{3, 1, 4, 1, 5};
  const std::size_t bytes = numbers.size() * sizeof(std::int32_t);
  const Buffer from = pinned(numbers);
  const Buffer a = device().allocate(bytes);
  const Buffer b = device().allocate(bytes);
  const Buffer to = device().allocate_host(bytes);
  const Buffer again = device().allocate_host(bytes);
  const auto stream = device().make_stream(Lane::copy_in);
  stream->copy(a.data(), from.data(), bytes);
  stream->copy(b.data(), a.data(), bytes);
  stream->copy(to.data(), b.data(), bytes);
  stream->copy(again.data(), to.data(), bytes);
  stream->synchronize();
  EXPECT_EQ(std::vector<std::int32_t>(ints(again), ints(again) + 5), numbers);
}

TEST_F(CudaDeviceTest, CopiesFromAndToMemoryThatIsNotPinned) {
  const std::vector<std::int32_t> numbers(100'000, 42);
  std::vector<std::int32_t> back(numbers.size());
  const std::size_t bytes = numbers.size() * sizeof(std::int32_t);
  const Buffer a = device().allocate(bytes);
  const auto stream = device().make_stream(Lane::compute);
  stream->copy(a.data(), reinterpret_cast<const std::byte*>(numbers.data()), bytes);
  stream->copy(reinterpret_cast<std::byte*>(back.data()), a.data(), bytes);
  stream->synchronize();
  EXPECT_EQ(back, numbers);
}

TEST_F(CudaDeviceTest, RunsKernelsThroughLaunch) {
  const Buffer host = pinned(std::vector<std::int32_t>{1, 2, 3});
  const Buffer data = device().allocate(host.bytes());
  const auto stream = device().make_stream(Lane::compute);
  stream->copy(data.data(), host.data(), host.bytes());
  tests::scale_and_add_one(*stream, ints(data), 2, 10);
  stream->copy(host.data(), data.data(), host.bytes());
  stream->synchronize();
  EXPECT_EQ(ints(host)[0], 11);
  EXPECT_EQ(ints(host)[1], 21);
  EXPECT_EQ(ints(host)[2], 3);
}

TEST_F(CudaDeviceTest, GivesBlocksSharedMemoryOfSeveralTypesAndSizes) {
  const auto stream = device().make_stream(Lane::compute);
  const Buffer data = device().allocate_host(64 * sizeof(double));
  for (const std::size_t spare : {std::size_t{0}, std::size_t{16}, std::size_t{60} << 10U}) {
    auto* floats = reinterpret_cast<float*>(data.data());
    for (int i = 0; i < 64; ++i) {
      floats[i] = static_cast<float>(i);
    }
    tests::reverse(*stream, floats, 64, spare);
    stream->synchronize();
    EXPECT_EQ(floats[0], 63) << spare;
    EXPECT_EQ(floats[63], 0) << spare;
    auto* doubles = reinterpret_cast<double*>(data.data());
    for (int i = 0; i < 64; ++i) {
      doubles[i] = i;
    }
    tests::reverse(*stream, doubles, 64, spare);
    stream->synchronize();
    EXPECT_EQ(doubles[1], 62) << spare;
  }
}

TEST_F(CudaDeviceTest, RefusesALaunchThatCannotBe) {
  const auto stream = device().make_stream(Lane::compute);
  const Buffer data = device().allocate(4096 * sizeof(float));
  EXPECT_THROW(tests::reverse(*stream, reinterpret_cast<float*>(data.data()), 4096, 0), Error);
  stream->synchronize();  // reports the refusal only once
}

TEST_F(CudaDeviceTest, OrdersStreamsByEvents) {
  const Buffer host = pinned(std::vector<std::int32_t>{1});
  const Buffer data = device().allocate(host.bytes());
  const auto slow = device().make_stream(Lane::compute);
  const auto other = device().make_stream(Lane::copy_out);
  const auto event = device().make_event();
  slow->copy(data.data(), host.data(), host.bytes());
  tests::spin(*slow, long_spin);
  tests::scale_and_add_one(*slow, ints(data), 1, 5);
  slow->record(*event);
  other->wait(*event);
  other->copy(host.data(), data.data(), host.bytes());
  other->synchronize();
  EXPECT_EQ(ints(host)[0], 6);
}

TEST_F(CudaDeviceTest, RunsHostWorkInOrder) {
  const Buffer host = pinned(std::vector<std::int32_t>{1});
  const Buffer data = device().allocate(host.bytes());
  const auto stream = device().make_stream(Lane::compute);
  std::vector<std::int32_t> seen;
  for (int i = 0; i < 600; ++i) {  // more entries than the stream holds at a time
    *ints(host) = 0;
    stream->host([&seen, i] { seen.push_back(i); });
  }
  stream->copy(data.data(), host.data(), host.bytes());
  tests::spin(*stream, long_spin);
  tests::scale_and_add_one(*stream, ints(data), 1, 5);
  stream->copy(host.data(), data.data(), host.bytes());
  stream->host([&seen, at = ints(host)] { seen.push_back(*at); });
  stream->synchronize();
  ASSERT_EQ(seen.size(), 601U);
  for (int i = 0; i < 600; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(seen.back(), 1);
}

TEST_F(CudaDeviceTest, WaitsForTheWorkOfAStreamThatIsDestroyed) {
  const Buffer host = pinned(std::vector<std::int32_t>{1});
  const Buffer data = device().allocate(host.bytes());
  auto stream = device().make_stream(Lane::compute);
  stream->copy(data.data(), host.data(), host.bytes());
  tests::spin(*stream, long_spin);
  tests::scale_and_add_one(*stream, ints(data), 1, 5);
  stream->copy(host.data(), data.data(), host.bytes());
  stream.reset();
  EXPECT_EQ(ints(host)[0], 6);
}

TEST_F(CudaDeviceTest, ThrowsTheFirstErrorOfHostWorkOnceAndSkipsTheRest) {
  const auto stream = device().make_stream(Lane::compute);
  bool ran = false;
  stream->host([] { throw Error("the work broke"); });
  stream->host([&ran] { ran = true; });
  EXPECT_THROW(stream->synchronize(), Error);
  EXPECT_FALSE(ran);
  stream->host([&ran] { ran = true; });
  stream->synchronize();
  EXPECT_TRUE(ran);
}

TEST_F(CudaDeviceTest, StampsTheTimeAtWhichAStreamGetsThere) {
  const auto stream = device().make_stream(Lane::compute);
  const auto other = device().make_stream(Lane::side);
  const auto event = device().make_event();
  for (int round = 0; round < 2; ++round) {
    Clock::time_point start;
    Clock::time_point end;
    Clock::time_point later;
    const Clock::time_point before = Clock::now();
    stream->stamp(start);
    tests::spin(*stream, long_spin);
    stream->stamp(end);
    stream->record(*event);
    other->wait(*event);
    other->stamp(later);
    stream->synchronize();
    other->synchronize();
    const Clock::time_point after = Clock::now();
    EXPECT_LE(before, start);
    EXPECT_GT(end - start, std::chrono::milliseconds(2));
    EXPECT_LE(end, later);
    // All stamps share the delay with which a loaded host learns the origin, so their difference
    // stays exact.
    EXPECT_LE(later - start, after - before + std::chrono::microseconds(100));
  }
}

TEST_F(CudaDeviceTest, SaysHowMuchWasAskedWhenMemoryIsOut) {
  try {
    device().allocate(std::size_t{1} << 50U);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with("out of memory: 1125899906842624 bytes asked, ")) << what;
    EXPECT_NE(what.find(device().name()), std::string::npos) << what;
  }
  EXPECT_GT(device().allocate(1024).bytes(), 0U) << "the device still works";
}

TEST_F(CudaDeviceTest, RefusesStreamsOfAnotherDevice) {
  CpuDevice processor;
  const auto stream = processor.make_stream(Lane::compute);
  EXPECT_THROW(native(*stream), Error);
}

}  // namespace
}  // namespace cnn::cuda
