#include "allreduce/nccl/library.h"

#include <dlfcn.h>

#include "runtime/error.h"

namespace cnn::allreduce::nccl {
namespace {

// Sets the function to null if the library lacks it.
template <class Function>
void find_function(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
}

}  // namespace

Library open_library(const std::string& file) {
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    throw Error("NCCL cannot be loaded: " + (why == nullptr ? file : std::string(why)) +
                "; install it, or use --comm_backend=ring, which sums on the host");
  }
  Library found;
  Status (*get_version)(int*) = nullptr;
  find_function(handle, get_version, "ncclGetVersion");
  find_function(handle, found.get_unique_id, "ncclGetUniqueId");
  find_function(handle, found.init_rank, "ncclCommInitRankConfig");
  find_function(handle, found.all_reduce, "ncclAllReduce");
  find_function(handle, found.group_start, "ncclGroupStart");
  find_function(handle, found.group_end, "ncclGroupEnd");
  find_function(handle, found.make_scaled_sum, "ncclRedOpCreatePreMulSum");
  find_function(handle, found.async_error, "ncclCommGetAsyncError");
  find_function(handle, found.abort, "ncclCommAbort");
  find_function(handle, found.error_text, "ncclGetErrorString");
  find_function(handle, found.last_error, "ncclGetLastError");
  find_function(handle, found.attach, "ncclCommRegister");
  find_function(handle, found.detach, "ncclCommDeregister");
  check(get_version != nullptr, file + " is no NCCL: it lacks ncclGetVersion");
  check(get_version(&found.version) == success && found.version >= min_version &&
            found.init_rank != nullptr,
        file + " is NCCL " + version_text(found.version) + "; the exchange needs " +
            version_text(min_version) + " or newer");
  return found;
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace cnn::allreduce::nccl
