#include "bench/machine/cpu_tuning.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "bench/machine/plan_cache_file.h"
#include "layers/cpu/candidate_timer.h"
#include "layers/cpu/conv_tuner.h"
#include "layers/cpu/isa.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using layers::cpu::ConvTuner;

// A tab would end the field of a line.
std::string as_field(std::string text) {
  std::ranges::replace(text, '\t', ' ');
  return text;
}

ChoiceFile::Owner owner_of(const std::string& processor, int threads) {
  std::string libraries = "no oneDNN";
  for (const layers::cpu::LibraryVersion& library : layers::cpu::library_versions()) {
    libraries = library.name + " " + library.version;
  }
  return {.device =
              as_field(fmt::format("{}, {}, {} threads", processor,
                                   layers::cpu::to_string(layers::cpu::effective_isa()), threads)),
          .version = as_field(libraries),
          .is_choice = layers::cpu::is_candidate_name};
}

std::optional<ChoiceFile> cache_for(const Config& config, const std::string& processor, int threads,
                                    Backend& backend) {
  const std::optional<std::string> file =
      config.gpu.plan_cache ? config.gpu.plan_cache : default_plan_cache();
  if (!file) {
    backend.notes.push_back(no_plan_cache_note());
    return std::nullopt;
  }
  try {
    ChoiceFile cache(*file, owner_of(processor, threads), /*may_create=*/true);
    backend.notes.push_back(
        plan_cache_note(cache.file().string(), cache.size(), cache.foreign(),
                        "processors, instruction sets, numbers of threads, devices or library "
                        "versions"));
    return cache;
  } catch (const Error& error) {
    backend.notes.push_back(fmt::format("plan cache: not used, {}", error.what()));
    return std::nullopt;
  }
}

// Returns the counted names in their order: "onednn nchw16c 7, winograd 4x4 5".
std::string list_of(const std::map<std::string, std::size_t>& chosen) {
  std::string text;
  for (const auto& [name, count] : chosen) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

// Returns the notes about choices since the last call.
std::vector<std::string> notes_of(const ConvTuner::Counts& now, ConvTuner::Counts& told) {
  std::vector<std::string> notes;
  if (now.chosen != told.chosen) {
    notes.push_back(fmt::format(
        "tuning: {} kinds of convolution were timed in {:.1f} s, {} were known{}; they run by {}",
        now.tuned, now.tuning_seconds, now.cached + now.adopted,
        now.untimed == 0 ? std::string()
                         : fmt::format(", {} more were not within --tune_seconds or the memory and "
                                       "go by the rules: run again to time them too",
                                       now.untimed),
        list_of(now.chosen)));
  }
  told = now;
  return notes;
}

}  // namespace

void add_cpu_tuning(const Config& config, const std::string& processor, int threads,
                    Backend& backend) {
  const auto tuner = std::make_shared<ConvTuner>(
      layers::cpu::ConvTunerOptions{.winograd = config.cpu.winograd,
                                    .seconds = config.gpu.tune_seconds},
      [device = backend.device.get()](const Op& op, const Signature& settled,
                                      std::span<const layers::cpu::ConvCandidate> all,
                                      const KernelTable& rules) {
        return layers::cpu::seconds_of_candidates(*device, op, settled, all, rules);
      },
      cache_for(config, processor, threads, backend));
  layers::cpu::add_tuned_rows(backend.kernels, tuner);
  KernelTuning& tuning = backend.tuning;
  tuning.notice = fmt::format(
      "tuning: the kernels that can run a convolution are timed where the plan cache does not know "
      "the fastest, for {:g} s at most (--tune_seconds); without --tune fixed rules choose",
      config.gpu.tune_seconds);
  tuning.stop = [tuner] { tuner->stop(); };
  tuning.choices = [tuner] { return tuner->choices_text(); };
  tuning.adopt = [tuner](const std::string& choices) { tuner->adopt(choices); };
  tuning.take_notes = [tuner, told = ConvTuner::Counts()]() mutable {
    std::vector<std::string> notes = tuner->take_notes();
    std::ranges::move(notes_of(tuner->counts(), told), std::back_inserter(notes));
    return notes;
  };
}

}  // namespace cnn::bench
