#include "bench/machine/backend.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "bench/machine/simulated_backend.h"
#include "runtime/error.h"

namespace cnn::bench {

std::string why_missing(const BackendKind& kind) {
  return kind.missing == nullptr ? std::string() : kind.missing();
}

const BackendKind* find_backend(std::span<const BackendKind> kinds, std::string_view device) {
  const auto found = std::ranges::find(kinds, device, &BackendKind::device);
  return found == kinds.end() ? nullptr : &*found;
}

StepOptions step_options(const Config& config) {
  return {.record = config.gpu.graph,
          .wait_for_each = config.gpu.sync_each_kernel && config.device == DeviceKind::gpu,
          .verify = config.lms.enabled && config.lms.verify};
}

std::vector<std::string> step_notes(const StepOptions& options) {
  std::vector<std::string> notes;
  if (options.verify) {
    notes.emplace_back(
        "--lms_verify: bytes that are free are filled with NaNs, what comes back from the host is "
        "compared with what left; times are not those of a normal run");
  }
  if (options.wait_for_each) {
    notes.emplace_back(
        "--sync_each_kernel: every kernel and copy is waited for, so that an error names it; times "
        "are not those of a normal run");
  }
  return notes;
}

namespace {

Backend made_backend(const Config& config, std::span<const BackendKind> kinds) {
  if (config.gpu.simulate) {
    return simulated_backend(config, find_backend(kinds, word_of(DeviceKind::gpu)));
  }
  const std::string device(word_of(config.device));
  const BackendKind* kind = find_backend(kinds, device);
  if (kind == nullptr) {
    throw Error(fmt::format("--device={0}: this build has no backend for {0}", device));
  }
  if (const std::string missing = why_missing(*kind); !missing.empty()) {
    throw Error(fmt::format("--device={}: {}", device, missing));
  }
  return kind->make(config);
}

}  // namespace

Backend make_backend(const Config& config, std::span<const BackendKind> kinds) {
  Backend backend = made_backend(config, kinds);
  if (config.lms.enabled && config.lms.disk && backend.has_own_memory()) {
    backend.disk = measure_disk(*config.lms.disk);
    if (std::string note = disk_note(*backend.disk); !note.empty()) {
      backend.notes.push_back(std::move(note));
    }
  }
  return backend;
}

}  // namespace cnn::bench
