#include "tests/support/cuda/nccl/communicator.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "runtime/error.h"
#include "tests/support/cuda/runtime/driver.h"
#include "tests/support/cuda/runtime/library_work.h"
#include "tests/support/cuda/runtime/violation.h"

namespace cnn::tests::emulated {
namespace {

// A captured graph's reference to its communicator; all copies of one node share it.
class Reference {
 public:
  explicit Reference(std::shared_ptr<std::atomic<int>> count) : count_(std::move(count)) {
    ++*count_;
  }
  ~Reference() { --*count_; }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

 private:
  std::shared_ptr<std::atomic<int>> count_;
};

std::optional<long> number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : std::optional(std::atol(text));
}

bool is_captured(cudaStream_t stream) {
  const std::scoped_lock lock(driver().lock.mutex);
  return stream->capture != nullptr;
}

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

std::string text_of(int rank, const ReductionArguments& arguments) {
  return "rank " + std::to_string(rank) + " reduces " + std::to_string(arguments.elements) +
         " elements of type " + std::to_string(arguments.type) + " by operation " +
         std::to_string(arguments.operation) +
         (arguments.captured != 0 ? " in a graph" : " outside of a graph");
}

}  // namespace

CommunicatorSettings settings_of_communicators() {
  CommunicatorSettings settings;
  if (const auto bytes = number_of("CNN_EMULATED_NCCL_BYTES")) {
    settings.buffer_bytes = static_cast<std::size_t>(*bytes);
  }
  if (const auto seconds = number_of("CNN_EMULATED_NCCL_ABORT_SECONDS")) {
    settings.longest_abort = std::chrono::seconds(*seconds);
  }
  settings.fault = fault_of_environment();
  return settings;
}

}  // namespace cnn::tests::emulated

using cnn::tests::emulated::driver;
using cnn::tests::emulated::InjectedFault;
using cnn::tests::emulated::Reduction;
using cnn::tests::emulated::ReductionArguments;
using cnn::tests::emulated::Segment;

ncclComm::ncclComm(int rank, int ranks, int device, bool blocking)
    : rank_(rank),
      ranks_(ranks),
      device_(device),
      blocking_(blocking),
      settings_(cnn::tests::emulated::settings_of_communicators()) {}

// Runs at the end of the process and ends a call that is still in progress.
ncclComm::~ncclComm() {
  aborted_ = true;
  if (worker_.joinable()) {
    worker_.join();
  }
}

ncclResult_t ncclComm::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

std::string ncclComm::last_error() const {
  const std::scoped_lock lock(mutex_);
  return text_;
}

ncclResult_t ncclComm::fail(ncclResult_t status, const std::string& why) {
  const std::scoped_lock lock(mutex_);
  text_ = why;
  return status;
}

ncclResult_t ncclComm::ready() {
  const ncclResult_t now = state();
  return now == ncclInProgress
             ? fail(ncclInvalidArgument,
                    "the communicator is used before its previous call has succeeded")
             : now;
}

// Every call of a nonblocking communicator is still in progress when it returns.
ncclResult_t ncclComm::run(const std::function<ncclResult_t()>& work) {
  if (worker_.joinable()) {
    worker_.join();
  }
  {
    const std::scoped_lock lock(mutex_);
    state_ = ncclInProgress;
  }
  const auto complete = [this, work] {
    cudaSetDevice(device_);
    const ncclResult_t result = work();
    const std::scoped_lock lock(mutex_);
    state_ = state_ == ncclInProgress ? result : state_;  // a reduction may have failed already
  };
  worker_ = std::thread(complete);
  if (!blocking_) {
    return ncclInProgress;
  }
  worker_.join();
  return state();
}

ncclResult_t ncclComm::start(const ncclUniqueId& id) {
  return run([this, id] {
    const ncclResult_t result = join(id);
    if (result != ncclSuccess && segment_ != nullptr) {
      segment_->slot(rank_).failed = 1;
    }
    return result;
  });
}

ncclResult_t ncclComm::join(const ncclUniqueId& id) {
  try {
    segment_ = std::make_unique<Segment>(id, ranks_);
  } catch (const cnn::Error& error) {
    return fail(ncclSystemError, error.what());
  }
  if (const int first = segment_->agree_on_ranks(ranks_); first != ranks_) {
    return fail(ncclInvalidArgument, "rank " + std::to_string(rank_) + " joins " +
                                         std::to_string(ranks_) + " ranks, others join " +
                                         std::to_string(first));
  }
  Segment::Slot& mine = segment_->slot(rank_);
  if (mine.joined.exchange(1) != 0) {
    return fail(ncclInvalidUsage, "rank " + std::to_string(rank_) + " joins twice");
  }
  return join_as(mine);
}

ncclResult_t ncclComm::join_as(Segment::Slot& mine) {
  if (const ncclResult_t result = allocate("the start"); result != ncclSuccess) {
    return result;
  }
  mine.device = device_ + 1;
  bool failed = false;
  const bool complete = wait_for_ranks([&](Segment::Slot& slot) {
    failed = failed || (slot.device == 0 && slot.failed != 0);
    return failed || slot.device != 0;
  });
  if (!complete) {
    return fail(ncclInternalError, "the communicator was aborted while it was made");
  }
  if (failed) {
    return fail(ncclRemoteError, "another rank could not make its communicator");
  }
  for (int other = 0; other < ranks_; ++other) {
    if (other != rank_ && segment_->slot(other).device == mine.device) {
      return fail(ncclInvalidUsage, "ranks " + std::to_string(std::min(rank_, other)) + " and " +
                                        std::to_string(std::max(rank_, other)) +
                                        " are both on device " + std::to_string(device_));
    }
  }
  return ncclSuccess;
}

ncclResult_t ncclComm::allocate(const char* what) {
  void* buffer = nullptr;
  if (const cudaError_t error = cudaMalloc(&buffer, settings_.buffer_bytes); error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return fail(ncclUnhandledCudaError, "cudaMalloc of " + std::to_string(settings_.buffer_bytes) +
                                            " bytes for " + what +
                                            " has failed: " + cudaGetErrorString(error));
  }
  buffers_.push_back(buffer);
  return ncclSuccess;
}

ncclResult_t ncclComm::launch(std::vector<Reduction> reductions) {
  return run([this, reductions = std::move(reductions)] {
    if (launched_ == 0) {  // the first use makes the connections
      if (const ncclResult_t result = allocate("the first reduction"); result != ncclSuccess) {
        return result;
      }
    }
    for (const Reduction& reduction : reductions) {
      if (const ncclResult_t result = enqueue(reduction); result != ncclSuccess) {
        return result;
      }
    }
    return ncclSuccess;
  });
}

ncclResult_t ncclComm::enqueue(const Reduction& reduction) {
  namespace emulated = cnn::tests::emulated;
  const std::uint64_t number = launched_++;
  if (strikes(InjectedFault::Kind::late, number)) {
    std::this_thread::sleep_for(settings_.fault->delay);
  }
  if (strikes(InjectedFault::Kind::refuse, number)) {
    return fail(ncclSystemError, "the launch was refused, as the test asks");
  }
  const std::size_t bytes = reduction.elements * sizeof(float);
  const emulated::Operand operands[] = {
      {.name = "the memory to send from", .data = reduction.from, .bytes = bytes, .alignment = 4},
      {.name = "the memory to receive in", .data = reduction.to, .bytes = bytes, .alignment = 4}};
  if (const std::string why = why_unusable(operands, reduction.stream); !why.empty()) {
    emulated::violate("ncclAllReduce: " + why);
    return fail(ncclInvalidArgument, why);
  }
  const bool captured = emulated::is_captured(reduction.stream);
  const auto reference =
      captured ? std::make_shared<const emulated::Reference>(recordings_) : nullptr;
  const cudaError_t error =
      emulated::enqueue(reduction.stream, "ncclAllReduce", operands,
                        [this, reduction, captured, reference] { execute(reduction, captured); });
  return error == cudaSuccess ? ncclSuccess
                              : fail(ncclUnhandledCudaError, cudaGetErrorString(error));
}

bool ncclComm::strikes(InjectedFault::Kind kind, std::uint64_t reduction) const {
  return settings_.fault && settings_.fault->strikes(kind, rank_, reduction);
}

bool ncclComm::wait_for_ranks(const std::function<bool(Segment::Slot&)>& is_there) {
  for (int other = 0; other < ranks_; ++other) {
    while (!is_there(segment_->slot(other))) {
      if (aborted_) {
        return false;
      }
      cnn::tests::emulated::pause();
    }
  }
  return !aborted_;
}

bool ncclComm::barrier() {
  segment_->slot(rank_).barriers = ++barriers_;
  return wait_for_ranks(
      [this](Segment::Slot& slot) { return slot.barriers >= barriers_ || slot.failed != 0; });
}

bool ncclComm::has_equal_arguments() {
  const ReductionArguments& first = segment_->slot(0).arguments;
  for (int other = 1; other < ranks_; ++other) {
    const ReductionArguments& theirs = segment_->slot(other).arguments;
    if (theirs != first) {
      const std::scoped_lock lock(mutex_);
      state_ = ncclInvalidUsage;
      text_ = cnn::tests::emulated::text_of(0, first) + ", " +
              cnn::tests::emulated::text_of(other, theirs);
      return false;
    }
  }
  return true;
}

// Runs in stream order. Like NCCL's kernel, it waits for the other ranks without a limit unless the
// communicator is aborted.
void ncclComm::execute(const Reduction& reduction, bool captured) {
  const std::uint64_t number = executed_++;
  if (strikes(InjectedFault::Kind::kill, number)) {
    static_cast<void>(std::raise(SIGKILL));
  }
  if (strikes(InjectedFault::Kind::delay, number)) {
    std::this_thread::sleep_for(settings_.fault->delay);
  }
  if (strikes(InjectedFault::Kind::error, number)) {
    segment_->slot(rank_).failed = 1;
    const std::scoped_lock lock(mutex_);
    state_ = ncclSystemError;
    text_ = "the connections of rank " + std::to_string(rank_) + " are gone, as the test asks";
  }
  segment_->slot(rank_).arguments = {.elements = reduction.elements,
                                     .type = static_cast<int>(reduction.type),
                                     .operation = static_cast<int>(reduction.operation),
                                     .captured = captured ? 1 : 0};
  if (!barrier() || is_cut_off()) {
    return;
  }
  const bool equal = has_equal_arguments();
  if (barrier() && equal) {  // all ranks have read all arguments before the first sum
    sum(reduction);
  }
}

// Like a kernel that has lost its connection, the rank waits until it is aborted.
bool ncclComm::is_cut_off() {
  bool failed = false;
  for (int other = 0; other < ranks_; ++other) {
    failed = failed || segment_->slot(other).failed != 0;
  }
  if (!failed) {
    return false;
  }
  {
    const std::scoped_lock lock(mutex_);
    if (state_ == ncclSuccess || state_ == ncclInProgress) {
      state_ = ncclRemoteError;
      text_ = "another rank has closed its connections";
    }
  }
  while (!aborted_) {
    cnn::tests::emulated::pause();
  }
  return true;
}

ncclRedOp_t ncclComm::add_operation(float scalar) {
  scalars_.push_back(scalar);
  return static_cast<ncclRedOp_t>(ncclNumOps + scalars_.size() - 1);
}

bool ncclComm::has_operation(ncclRedOp_t operation) const {
  return operation == ncclSum || operation == ncclAvg ||
         (operation >= ncclNumOps &&
          static_cast<std::size_t>(operation - ncclNumOps) < scalars_.size());
}

float ncclComm::factor_of(ncclRedOp_t operation) const {
  return operation == ncclSum   ? 1
         : operation == ncclAvg ? 1 / static_cast<float>(ranks_)
                                : scalars_.at(static_cast<std::size_t>(operation - ncclNumOps));
}

// Adds in the order of ranks; an operation with a factor multiplies each operand first.
void ncclComm::sum(const Reduction& reduction) {
  constexpr std::size_t most = Segment::chunk_bytes / sizeof(float);
  const float factor = reduction.factor;
  const auto* from = static_cast<const float*>(reduction.from);
  auto* to = static_cast<float*>(reduction.to);
  for (std::size_t at = 0; at < reduction.elements; at += most) {
    const std::size_t count = std::min(most, reduction.elements - at);
    auto* mine = reinterpret_cast<float*>(segment_->chunk(rank_));
    std::transform(from + at, from + at + count, mine, [=](float value) { return value * factor; });
    if (!barrier()) {
      return;
    }
    std::copy_n(reinterpret_cast<const float*>(segment_->chunk(0)), count, to + at);
    for (int other = 1; other < ranks_; ++other) {
      const auto* theirs = reinterpret_cast<const float*>(segment_->chunk(other));
      std::transform(to + at, to + at + count, theirs, to + at, std::plus<>());
    }
    if (!barrier()) {
      return;
    }
  }
}

void ncclComm::wait_until(const std::function<bool()>& ended, const std::string& what) const {
  const auto deadline = std::chrono::steady_clock::now() + settings_.longest_abort;
  while (!ended()) {
    if (std::chrono::steady_clock::now() > deadline) {
      cnn::tests::emulated::violate("ncclCommAbort waits for " + what);
      return;
    }
    cnn::tests::emulated::pause();
  }
}

// Tells running work to end and then waits for the thread of a call in progress and for graphs.
// Freeing memory also makes it wait for all work of the device.
ncclResult_t ncclComm::abort() {
  aborted_ = true;
  if (worker_.joinable()) {
    worker_.join();
  }
  wait_until([this] { return *recordings_ == 0; },
             "a graph that has captured reductions of this communicator, and that is not destroyed "
             "while the call blocks");
  wait_until(
      [this] {
        const std::scoped_lock lock(driver().lock.mutex);
        return driver().devices.at(static_cast<std::size_t>(device_)).queued == 0;
      },
      "the work of its device, which does not end while the call blocks");
  // A thread of its own frees the buffers, because the caller's may capture, which NCCL's own
  // runtime calls do not affect.
  std::thread([this] {
    for (void* buffer : buffers_) {
      static_cast<void>(cudaFree(buffer));
    }
  }).join();
  buffers_.clear();
  const std::scoped_lock lock(driver().lock.mutex);
  for (const auto& [memory, bytes] : attached_) {
    driver().attached.erase(driver().attached.find(memory));
  }
  attached_.clear();
  destroyed_ = true;
  return ncclSuccess;
}

ncclResult_t ncclComm::attach(void* memory, std::size_t bytes, void** handle) {
  const std::scoped_lock lock(driver().lock.mutex);
  const auto* block = driver().memory.find(memory);
  if (block == nullptr || block->device != device_ ||
      static_cast<std::byte*>(memory) + bytes > block->data + block->bytes) {
    return fail(ncclInvalidArgument, "memory to attach is not one block of the device");
  }
  attached_[memory] = bytes;
  driver().attached.insert(memory);
  *handle = memory;
  return ncclSuccess;
}

ncclResult_t ncclComm::detach(void* handle) {
  const std::scoped_lock lock(driver().lock.mutex);
  if (attached_.erase(handle) == 0) {
    return fail(ncclInvalidArgument, "memory to detach is not attached");
  }
  driver().attached.erase(driver().attached.find(handle));
  return ncclSuccess;
}
