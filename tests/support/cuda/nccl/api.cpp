#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <utility>
#include <vector>

#include "tests/support/cuda/nccl/communicator.h"
#include "tests/support/cuda/runtime/violation.h"

// The functions of NCCL that the program calls, with the rules of NCCL 2.28.

namespace cnn::tests::emulated {
namespace {

// An aborted communicator stays as an empty shell, so that a use of its handle is known as one.
struct Communicators {
  std::mutex mutex;
  std::deque<std::unique_ptr<ncclComm>> all;
};

Communicators& communicators() {
  static Communicators only;
  return only;
}

ncclComm* add(std::unique_ptr<ncclComm> made) {
  const std::scoped_lock lock(communicators().mutex);
  return communicators().all.emplace_back(std::move(made)).get();
}

bool is_alive(ncclComm_t communicator, const char* call) {
  const std::scoped_lock lock(communicators().mutex);
  const bool known = std::ranges::any_of(
      communicators().all, [&](const auto& other) { return other.get() == communicator; });
  if (known && !communicator->is_destroyed()) {
    return true;
  }
  violate(std::string(call) + " was given a communicator that is " + (known ? "aborted" : "none"));
  return false;
}

// The calls of a thread between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  std::vector<std::pair<ncclComm_t, std::vector<Reduction>>> calls;  // by communicator
  ncclResult_t error = ncclSuccess;
};

Group& group() {
  thread_local Group of_thread;
  return of_thread;
}

void add_call(ncclComm_t communicator, const Reduction& reduction) {
  auto& calls = group().calls;
  auto found = std::ranges::find(calls, communicator, [](const auto& row) { return row.first; });
  if (found == calls.end()) {
    found = calls.insert(calls.end(), {communicator, {}});
  }
  found->second.push_back(reduction);
}

// In progress if a communicator does not block; else the first error.
ncclResult_t launch(Group finished) {
  ncclResult_t result = finished.error;
  if (result != ncclSuccess) {
    return result;  // nothing of a group with a wrong call is launched
  }
  for (auto& [communicator, reductions] : finished.calls) {
    const ncclResult_t launched = communicator->launch(std::move(reductions));
    result = result == ncclSuccess ? launched : result;
  }
  return result;
}

ncclResult_t checked(ncclComm_t communicator, const Reduction& reduction) {
  if (const ncclResult_t ready = communicator->ready(); ready != ncclSuccess) {
    return ready;
  }
  if (reduction.from == nullptr || reduction.to == nullptr) {
    return communicator->fail(ncclInvalidArgument, "ncclAllReduce was given no memory");
  }
  if (reduction.type != ncclFloat32) {
    violate("the emulated NCCL sums float32 only");
    return communicator->fail(ncclInvalidArgument, "a type that is not emulated");
  }
  return ncclSuccess;
}

// Success, or why a configuration cannot be taken.
bool is_valid(const ncclConfig_t* config) {
  constexpr std::size_t min_bytes = 24;  // up to `blocking`, which version 2.14 has
  constexpr unsigned magic = 0xcafebeef;
  return config->size >= min_bytes && config->magic == magic &&
         config->version >= NCCL_VERSION(2, 14, 0) &&
         (config->blocking == 0 || config->blocking == 1 ||
          config->blocking == NCCL_CONFIG_UNDEF_INT);
}

}  // namespace
}  // namespace cnn::tests::emulated

using cnn::tests::emulated::group;
using cnn::tests::emulated::is_alive;
using cnn::tests::emulated::Segment;

extern "C" {

// The library that stands for NCCL finds the emulation by this name.
extern const int cnn_emulated_nccl;
const int cnn_emulated_nccl = NCCL_VERSION_CODE;

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = Segment::create();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  *communicator = nullptr;
  if (ranks < 1 || ranks > Segment::max_ranks || rank < 0 || rank >= ranks ||
      (config != nullptr && !cnn::tests::emulated::is_valid(config))) {
    return ncclInvalidArgument;
  }
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) {
    return ncclUnhandledCudaError;
  }
  const bool blocking = config == nullptr || config->blocking != 0;
  *communicator =
      cnn::tests::emulated::add(std::make_unique<ncclComm>(rank, ranks, device, blocking));
  return (*communicator)->start(id);
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group().depth == 0) {
    cnn::tests::emulated::violate("ncclGroupEnd was called without ncclGroupStart");
    return ncclInvalidUsage;
  }
  if (--group().depth > 0) {
    return ncclSuccess;
  }
  return cnn::tests::emulated::launch(std::exchange(group(), {}));
}

// NOLINTNEXTLINE(readability-function-size): the parameters are NCCL's
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t elements, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  if (!is_alive(communicator, "ncclAllReduce")) {
    return ncclInvalidArgument;
  }
  if (!communicator->has_operation(operation)) {
    cnn::tests::emulated::violate(
        "ncclAllReduce was given an operation that the communicator does not have");
    return ncclInvalidArgument;
  }
  const cnn::tests::emulated::Reduction reduction{.from = from,
                                                  .to = to,
                                                  .elements = elements,
                                                  .type = type,
                                                  .operation = operation,
                                                  .factor = communicator->factor_of(operation),
                                                  .stream = stream};
  ncclGroupStart();
  if (const ncclResult_t wrong = cnn::tests::emulated::checked(communicator, reduction);
      wrong != ncclSuccess) {
    group().error = wrong;
    const ncclResult_t ended = ncclGroupEnd();
    return ended == ncclSuccess ? wrong : ended;
  }
  if (elements > 0) {
    cnn::tests::emulated::add_call(communicator, reduction);
  }
  return ncclGroupEnd();
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* operation, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t communicator) {
  if (!is_alive(communicator, "ncclRedOpCreatePreMulSum")) {
    return ncclInvalidArgument;
  }
  if (type != ncclFloat32 || residence != ncclScalarHostImmediate) {
    cnn::tests::emulated::violate("the emulated NCCL scales by a float32 of the host only");
    return ncclInvalidArgument;
  }
  if (const ncclResult_t ready = communicator->ready(); ready != ncclSuccess) {
    return ready;
  }
  *operation = communicator->add_operation(*static_cast<const float*>(scalar));
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  if (!is_alive(communicator, "ncclCommGetAsyncError")) {
    return ncclInvalidArgument;
  }
  *error = communicator->state();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  return is_alive(communicator, "ncclCommAbort") ? communicator->abort() : ncclInvalidArgument;
}

ncclResult_t ncclCommRegister(const ncclComm_t communicator, void* memory, std::size_t bytes,
                              void** handle) {
  return is_alive(communicator, "ncclCommRegister") ? communicator->attach(memory, bytes, handle)
                                                    : ncclInvalidArgument;
}

ncclResult_t ncclCommDeregister(const ncclComm_t communicator, void* handle) {
  return is_alive(communicator, "ncclCommDeregister") ? communicator->detach(handle)
                                                      : ncclInvalidArgument;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t communicator) {
  thread_local std::string text;
  text = communicator == nullptr ? std::string() : communicator->last_error();
  return text.c_str();
}

}  // extern "C"
