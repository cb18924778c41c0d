#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <nccl.h>

// The library that the program opens as NCCL. It forwards each function to the emulation, which
// lies with the emulated devices in the program's GPU module or in a test.

namespace {

// Finds the loaded object that contains the emulation.
int look_in(dl_phdr_info* object, std::size_t /*size*/, void* found) {
  const bool is_program = *object->dlpi_name == '\0';
  void* const handle = ::dlopen(is_program ? nullptr : object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr || ::dlsym(handle, "cnn_emulated_nccl") == nullptr) {
    return 0;
  }
  *static_cast<void**>(found) = handle;
  return 1;
}

void* emulation() {
  static void* const handle = [] {
    void* found = nullptr;
    ::dl_iterate_phdr(look_in, &found);
    if (found == nullptr) {
      static_cast<void>(std::fprintf(stderr, "no loaded object has the emulated NCCL\n"));
      std::abort();
    }
    return found;
  }();
  return handle;
}

template <class Function>
Function* find(Function* /*same_type*/, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(emulation(), name));
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  return find(&ncclGetVersion, "ncclGetVersion")(version);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return find(&ncclGetUniqueId, "ncclGetUniqueId")(id);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return find(&ncclCommInitRankConfig, "ncclCommInitRankConfig")(communicator, ranks, id, rank,
                                                                 config);
}

ncclResult_t ncclGroupStart() { return find(&ncclGroupStart, "ncclGroupStart")(); }

ncclResult_t ncclGroupEnd() { return find(&ncclGroupEnd, "ncclGroupEnd")(); }

// NOLINTNEXTLINE(readability-function-size): the parameters are NCCL's
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t elements, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  return find(&ncclAllReduce, "ncclAllReduce")(from, to, elements, type, operation, communicator,
                                               stream);
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* operation, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t communicator) {
  return find(&ncclRedOpCreatePreMulSum, "ncclRedOpCreatePreMulSum")(operation, scalar, type,
                                                                     residence, communicator);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  return find(&ncclCommGetAsyncError, "ncclCommGetAsyncError")(communicator, error);
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  return find(&ncclCommAbort, "ncclCommAbort")(communicator);
}

ncclResult_t ncclCommRegister(const ncclComm_t communicator, void* memory, std::size_t bytes,
                              void** handle) {
  return find(&ncclCommRegister, "ncclCommRegister")(communicator, memory, bytes, handle);
}

ncclResult_t ncclCommDeregister(const ncclComm_t communicator, void* handle) {
  return find(&ncclCommDeregister, "ncclCommDeregister")(communicator, handle);
}

const char* ncclGetErrorString(ncclResult_t result) {
  return find(&ncclGetErrorString, "ncclGetErrorString")(result);
}

const char* ncclGetLastError(ncclComm_t communicator) {
  return find(&ncclGetLastError, "ncclGetLastError")(communicator);
}

}  // extern "C"
