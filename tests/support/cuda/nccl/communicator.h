#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cuda/nccl/fault.h"
#include "tests/support/cuda/nccl/segment.h"

namespace cnn::tests::emulated {

// The arguments of a requested reduction.
struct Reduction {
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t elements = 0;
  ncclDataType_t type{};
  ncclRedOp_t operation{};
  float factor = 1;  // factor of the operation
  cudaStream_t stream = nullptr;
};

// Environment variables configure communicators, because the tested programs do not know the
// emulation.
struct CommunicatorSettings {
  std::size_t buffer_bytes = std::size_t{4} << 20U;  // CNN_EMULATED_NCCL_BYTES
  // CNN_EMULATED_NCCL_ABORT_SECONDS: the time after which a waiting abort is a violation.
  std::chrono::seconds longest_abort{120};
  std::optional<InjectedFault> fault;  // see fault_of_environment()
};
CommunicatorSettings settings_of_communicators();

}  // namespace cnn::tests::emulated

// NOLINTBEGIN(readability-identifier-naming): NCCL's name
// One rank's communicator with the behaviour of the real one. It takes device memory when it is
// made and at its first reduction. Its kernels wait for the other ranks until it is aborted.
// Captured launches count as recordings that refer to it. An abort waits until these recordings and
// the work of its device have ended.
struct ncclComm {
 public:
  ncclComm(int rank, int ranks, int device, bool blocking);
  ~ncclComm();
  ncclComm(const ncclComm&) = delete;
  ncclComm& operator=(const ncclComm&) = delete;

  bool is_blocking() const { return blocking_; }
  bool is_destroyed() const { return destroyed_; }

  // Joins the other ranks, on this thread or on a thread of its own.
  ncclResult_t start(const ncclUniqueId& id);
  ncclResult_t launch(std::vector<cnn::tests::emulated::Reduction> reductions);
  // Returns success, or why the communicator accepts no call now.
  ncclResult_t ready();
  ncclResult_t abort();
  ncclResult_t attach(void* memory, std::size_t bytes, void** handle);
  ncclResult_t detach(void* handle);
  // Adds an operation that multiplies its operands by the scalar before it adds them.
  ncclRedOp_t add_operation(float scalar);
  bool has_operation(ncclRedOp_t operation) const;
  float factor_of(ncclRedOp_t operation) const;

  ncclResult_t state() const;
  std::string last_error() const;
  ncclResult_t fail(ncclResult_t status, const std::string& why);  // returns the status

 private:
  using Reduction = cnn::tests::emulated::Reduction;
  using Segment = cnn::tests::emulated::Segment;

  ncclResult_t run(const std::function<ncclResult_t()>& work);
  ncclResult_t join(const ncclUniqueId& id);
  ncclResult_t join_as(Segment::Slot& mine);
  ncclResult_t allocate(const char* what);
  ncclResult_t enqueue(const Reduction& reduction);
  void execute(const Reduction& reduction, bool captured);
  bool has_equal_arguments();
  bool is_cut_off();
  void sum(const Reduction& reduction);
  bool barrier();  // returns false if the communicator is aborted or has failed
  bool wait_for_ranks(const std::function<bool(Segment::Slot&)>& is_there);
  bool strikes(cnn::tests::emulated::InjectedFault::Kind kind, std::uint64_t reduction) const;
  // Waits for a condition that must become true; reports a violation if it takes too long.
  void wait_until(const std::function<bool()>& ended, const std::string& what) const;

  const int rank_, ranks_, device_;
  const bool blocking_;
  cnn::tests::emulated::CommunicatorSettings settings_;
  std::unique_ptr<Segment> segment_;
  mutable std::mutex mutex_;  // guards state_ and text_
  ncclResult_t state_ = ncclSuccess;
  std::string text_;
  std::thread worker_;  // runs the call in progress
  std::atomic<bool> aborted_ = false, destroyed_ = false;
  std::shared_ptr<std::atomic<int>> recordings_ = std::make_shared<std::atomic<int>>(0);
  std::uint64_t launched_ = 0, executed_ = 0, barriers_ = 0;
  std::vector<void*> buffers_;
  std::vector<float> scalars_;  // scalars of the operations from ncclNumOps on
  std::map<void*, std::size_t> attached_;
};
// NOLINTEND(readability-identifier-naming)
