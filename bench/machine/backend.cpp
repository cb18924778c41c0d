#include "bench/machine/backend.h"

#include <algorithm>
#include <fmt/format.h>

#include "runtime/error.h"

namespace cnn::bench {

const BackendKind* find_backend(std::span<const BackendKind> kinds, std::string_view device) {
  const auto found = std::ranges::find(kinds, device, &BackendKind::device);
  return found == kinds.end() ? nullptr : &*found;
}

Backend make_backend(const Config& config, std::span<const BackendKind> kinds) {
  const BackendKind* kind = find_backend(kinds, config.device);
  if (kind == nullptr) {
    throw Error(fmt::format("--device={0}: this build has no backend for {0}", config.device));
  }
  if (config.simulate) {
    check(kind->describe != nullptr,
          fmt::format("--simulate={}: the {} backend describes no machine", *config.simulate,
                      config.device));
    return kind->describe(config);
  }
  if (!kind->missing.empty()) {
    throw Error(fmt::format("--device={}: {}", config.device, kind->missing));
  }
  Backend backend = kind->make(config);
  backend.record_steps = config.use_cuda_graph;
  return backend;
}

}  // namespace cnn::bench
