#include "runtime/cuda/stream.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

#include "runtime/error.h"
#include "tests/runtime/cuda/on_device.h"
#include "tests/support/error_of.h"

namespace cnn::cuda {
namespace {

class CudaStreamTest : public tests::OnCudaDevice {
 protected:
  // Enqueues host work that waits for `released`, then as many pieces of host work as a stream
  // keeps pending. Releases them after ten seconds if nothing else does.
  void fill(Stream& stream) {
    const std::jthread watchdog([this](const std::stop_token& stopped) {
      for (int rounds = 0; rounds < 1000 && !stopped.stop_requested(); ++rounds) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      if (!stopped.stop_requested()) {
        release();
      }
    });
    stream.host([this] { finish(); });
    for (int task = 0; task < 256; ++task) {
      stream.host([] {});
    }
  }
  void finish() {
    released.wait(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    finished = true;
  }
  void release() {
    released = true;
    released.notify_all();
  }

  std::atomic<bool> released = false, finished = false;
};

// To set the clock's origin, a stamp waits for the stream's earlier work. A stamp after an origin
// that is still in use does not.
TEST_F(CudaStreamTest, ReleasesTheClockWhenItIsDestroyedWithStamps) {
  std::chrono::steady_clock::time_point at;
  device().make_stream(Lane::compute)->stamp(at);
  std::atomic<bool> done = false;
  const auto stream = device().make_stream(Lane::compute);
  stream->host([&done] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    done = true;
  });
  stream->stamp(at);
  EXPECT_TRUE(done) << "the origin is still that of the destroyed stream";
  stream->synchronize();
}

TEST_F(CudaStreamTest, PollsWhileItWaitsForAFreeHostTask) {
  const auto stream = device().make_stream(Lane::compute);
  int polls = 0, ends = 0;
  device().on_poll([&](bool waiting) {
    polls += waiting ? 1 : 0;
    ends += waiting ? 0 : 1;
    if (polls == 3) {
      release();
    }
  });
  fill(*stream);
  EXPECT_GE(polls, 3);
  EXPECT_EQ(ends, 1);
  stream->synchronize();
  EXPECT_TRUE(finished);
}

TEST_F(CudaStreamTest, EndsTheWaitForAFreeHostTaskWhenThePollThrows) {
  const auto stream = device().make_stream(Lane::compute);
  device().on_poll([](bool waiting) { check(!waiting, "rank 1 is lost"); });
  EXPECT_EQ(cnn::tests::error_of([&] { fill(*stream); }), "rank 1 is lost");
  device().on_poll({});
  release();
  fill(*stream);  // the tasks can be used again
  stream->synchronize();
}

TEST_F(CudaStreamTest, HasNoWorkLeftWhenThePollThrows) {
  const auto stream = device().make_stream(Lane::compute);
  device().on_poll([this](bool waiting) {
    release();
    check(!waiting, "rank 1 is lost");
  });
  stream->host([this] { finish(); });
  EXPECT_EQ(cnn::tests::error_of([&] { stream->synchronize(); }), "rank 1 is lost");
  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace cnn::cuda
