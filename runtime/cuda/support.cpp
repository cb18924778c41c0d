#include "runtime/cuda/support.h"

#include <algorithm>

#include "runtime/cuda/error.h"

namespace cnn::cuda {
namespace {

constexpr int lowest_major = 8;  // first with bf16 and the tensor cores of cuDNN's bf16 engines

std::string option_for(int major, int minor) {
  return "-DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(10 * major + minor);
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_no_device(cudaError_t status, int driver, int runtime) {
  // A driver runs programs of every toolkit of its own major version.
  if (driver > 0 && driver / 1000 < runtime / 1000) {
    return "the NVIDIA driver takes CUDA up to " + version_text(driver) +
           ", but this program was built with CUDA " + version_text(runtime) +
           ": install a driver for CUDA " + std::to_string(runtime / 1000) +
           " or build with a toolkit that the driver takes";
  }
  if (status == cudaErrorInsufficientDriver && driver == 0) {
    return "no NVIDIA driver is installed, or it cannot be loaded";
  }
  return text_of(status == cudaSuccess ? cudaErrorNoDevice : status);
}

std::string why_unsupported(const std::string& device, int major, int minor) {
  if (major >= lowest_major) {
    return "";
  }
  return device + " has compute capability " + std::to_string(major) + "." + std::to_string(minor) +
         ", but the CUDA backend needs " + std::to_string(lowest_major) +
         ".0 or more (Ampere or newer): choose another card with CUDA_VISIBLE_DEVICES, or "
         "--device=cpu";
}

std::string why_not_built_for(int major, int minor, std::span<const int> built_for) {
  const auto is_newer = [=](int built) { return built > 100 * major + 10 * minor; };
  if (built_for.empty() || !std::ranges::all_of(built_for, is_newer)) {
    return "";
  }
  return "this program has kernels for newer cards only, and none for compute capability " +
         std::to_string(major) + "." + std::to_string(minor) + ": build it with " +
         option_for(major, minor) + ", or choose --device=cpu";
}

std::string compilation_note(int major, int minor, std::span<const int> built_for) {
  // Machine code runs on later minor versions of the same major version.
  const auto fits = [=](int built) { return built / 100 == major && built % 100 <= 10 * minor; };
  if (built_for.empty() || std::ranges::any_of(built_for, fits)) {
    return "";
  }
  return "kernels: this program has none for compute capability " + std::to_string(major) + "." +
         std::to_string(minor) +
         ", so the driver compiles ours from PTX when they are first used: the first start takes "
         "longer, and they may be slower than those of a build for this card (" +
         option_for(major, minor) + ")";
}

}  // namespace cnn::cuda
