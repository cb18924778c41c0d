// Tests the NCCL communicator on emulated devices with recorded steps when a rank is lost.
#include "allreduce/nccl/communicator.h"

#include <array>
#include <atomic>
#include <memory>

#include "allreduce/transport.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/stream.h"
#include "tests/allreduce/emulated_gpu/nccl_ranks.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce::nccl {
namespace {

using testing::HasSubstr;
using tests::emulated::Variable;

// A rank as in a training run: its device polls the peers while it waits, and members are destroyed
// in the order of a session.
class Rank {
 public:
  Rank(const UniqueId& id, int number, const std::atomic<bool>& lost)
      : device_(number), lost_(lost) {
    communicator_ = std::make_shared<Communicator>(
        open_library(CNN_EMULATED_NCCL),
        Team{.rank = number,
             .ranks = 2,
             .id = id,
             .check_peers = [this](bool waiting) { check_peers(waiting); },
             .native = [](Stream& stream) -> void* { return cuda::native(stream); }});
    device_.on_poll([c = communicator_](bool waiting) { c->poll(waiting); });
    memory_ = std::make_shared<Buffer>(device_.allocate(64));
    attached_ = communicator_->attach(memory_);
    stream_ = device_.make_stream(Lane::communicate);
  }

  void sum() {
    const std::span<float> piece(reinterpret_cast<float*>(memory_->data()), 4);
    communicator_->all_reduce(*stream_, 0, {&piece, 1}, 1);
  }
  void record() {
    std::array<Stream*, 1> streams{stream_.get()};
    recording_ = device_.record(streams, [this] { sum(); });
  }
  void replay() { recording_->replay(*stream_); }
  void synchronize() { stream_->synchronize(); }

  std::shared_ptr<Communicator> communicator() const { return communicator_; }
  std::unique_ptr<Recording> take_recording() { return std::move(recording_); }

 private:
  void check_peers(bool waiting) const {
    if (waiting && lost_) {
      throw PeerLost(1, "rank 1 is lost");
    }
    std::this_thread::yield();
  }

  cuda::CudaDevice device_;
  const std::atomic<bool>& lost_;
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<Buffer> memory_;
  std::shared_ptr<void> attached_;
  std::unique_ptr<Recording> recording_;
  std::unique_ptr<Stream> stream_;
};

class NcclOnDevices : public tests::emulated::EmulatedNccl {
 protected:
  // Only rank 0 learns of the lost rank, and only after it has set `lost` itself, so earlier waits
  // succeed.
  const std::atomic<bool>& loss_told_to(int number) const { return number == 0 ? lost : never; }

  UniqueId made = make_id(open_library(CNN_EMULATED_NCCL));
  std::atomic<bool> lost = false;
  const std::atomic<bool> never = false;
  // Ends the process with a message if an abort waits longer than this.
  const Variable shorter{"CNN_EMULATED_NCCL_ABORT_SECONDS", "10"};
};

TEST_F(NcclOnDevices, NamesARankThatIsLostWhileARecordedStepWaitsForIt) {
  on_ranks(2, [&](int number) {
    Rank rank(made, number, loss_told_to(number));
    rank.record();
    rank.replay();
    rank.synchronize();
    if (number == 1) {
      return;
    }
    lost = true;
    rank.replay();
    EXPECT_EQ(tests::error_of([&] { rank.synchronize(); }), "rank 1 is lost");
    EXPECT_EQ(tests::error_of([&] { rank.sum(); }),
              "the exchange has failed before: rank 1 is lost");
  });
}

TEST_F(NcclOnDevices, NamesARankThatIsLostWhileAStepIsRecorded) {
  on_ranks(2, [&](int number) {
    Rank rank(made, number, loss_told_to(number));
    rank.sum();
    rank.synchronize();
    if (number == 1) {
      return;
    }
    lost = true;
    EXPECT_EQ(tests::error_of([&] { rank.record(); }), "rank 1 is lost");
  });
}

// NCCL launches from a thread of its own, which may still be about to use the stream.
TEST_F(NcclOnDevices, KeepsTheStreamOfALateLaunchUntilItIsAborted) {
  const Variable late("CNN_EMULATED_NCCL_FAULT", "late:0:1:300");
  on_ranks(2, [&](int number) {
    Rank rank(made, number, loss_told_to(number));
    rank.sum();
    rank.synchronize();
    if (number == 0) {
      lost = true;
      EXPECT_EQ(tests::error_of([&] { rank.record(); }), "rank 1 is lost");
    }
  });
}

TEST_F(NcclOnDevices, KeepsMemoryUntilTheAbortThatWaitsForAGraphHasEnded) {
  on_ranks(2, [&](int number) {
    std::shared_ptr<Communicator> communicator;
    std::unique_ptr<Recording> recording;
    Rank rank(made, number, loss_told_to(number));
    rank.record();
    rank.replay();
    rank.synchronize();
    if (number == 1) {
      return;
    }
    lost = true;
    rank.replay();
    EXPECT_EQ(tests::error_of([&] { rank.synchronize(); }), "rank 1 is lost");
    communicator = rank.communicator();
    recording = rank.take_recording();  // the recording outlives the rank's memory
  });
}

TEST_F(NcclOnDevices, EndsAStepWhoseRecordingNcclRefuses) {
  const Variable fault("CNN_EMULATED_NCCL_FAULT", "refuse:0:1");
  on_ranks(2, [&](int number) {
    Rank rank(made, number, loss_told_to(number));
    rank.sum();
    rank.synchronize();
    if (number == 0) {
      lost = true;  // in a run, the peer check names the lost rank
      EXPECT_EQ(tests::error_of([&] { rank.record(); }), "rank 1 is lost");
    }
  });
}

TEST_F(NcclOnDevices, SaysWhichRankHasNoMemoryForItsBuffers) {
  const Variable large("CNN_EMULATED_NCCL_BYTES", "4294967296");
  const std::string error = tests::error_of([&] { const Rank rank(made, 0, lost); });
  EXPECT_THAT(error, testing::AllOf(HasSubstr("out of memory"), HasSubstr("on rank 0")));
}

}  // namespace
}  // namespace cnn::allreduce::nccl
