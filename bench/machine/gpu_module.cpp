#include "bench/machine/gpu_module.h"

#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

namespace fs = std::filesystem;

fs::path module_path() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path() / "cnn_gpu.so";
}

// A portable program contains the entry itself.
void* entry_of_program() { return ::dlsym(RTLD_DEFAULT, gpu_entry_name); }

bool has_module() {
  std::error_code ignored;
  return entry_of_program() != nullptr || fs::is_regular_file(module_path(), ignored);
}

std::string last_problem() {
  const char* problem = ::dlerror();
  return problem == nullptr ? "unknown reason" : problem;
}

// The module stays open for the life of the program, since it contains the code of kernels and
// devices.
const GpuBackend& open_module() {
  void* entry = entry_of_program();
  if (entry == nullptr) {
    const fs::path path = module_path();
    void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      throw Error(
          fmt::format("the GPU backend cannot be loaded: {}; are the CUDA libraries and "
                      "cuDNN 9 that the program was built with installed?",
                      last_problem()));
    }
    entry = ::dlsym(module, gpu_entry_name);
    check(entry != nullptr, fmt::format("{} is not the GPU backend of this program; put the one "
                                        "of its build there, or remove the file",
                                        path.string()));
  }
  return *reinterpret_cast<GpuEntry>(entry)();
}

// Without a driver, no further check is needed.
bool has_driver() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver != nullptr) {
    ::dlclose(driver);
  }
  return driver != nullptr;
}

std::string missing() {
  if (!has_driver()) {
    return "no CUDA device: this machine has no driver (libcuda.so.1)";
  }
  try {
    return open_module().missing();
  } catch (const Error& error) {
    return fmt::format("no CUDA device: {}", error.what());
  }
}

Backend make_gpu(const Config& config) { return open_module().make(config); }
Backend describe_gpu(const Config& config, const MachineModel& model) {
  return open_module().describe(config, model);
}

}  // namespace

std::vector<BackendKind> gpu_backends() {
  if (!has_module()) {
    return {};
  }
  return {{.device = "gpu", .missing = missing, .make = make_gpu, .describe = describe_gpu}};
}

}  // namespace cnn::bench
