#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/cpu/conv_candidates.h"
#include "layers/cpu/isa.h"
#include "runtime/choice_file.h"
#include "runtime/kernel.h"

namespace cnn::layers::cpu {

struct ConvTunerOptions {
  Isa isa = effective_isa();
  bool winograd = true;  // as in KernelChoice
  // After so many seconds of timing the rest goes by the rules.
  double seconds = std::numeric_limits<double>::infinity();
};

// Autotuning of convolutions: chooses among their kernels by time instead of by rules. A choice
// holds for all convolutions of one conv_key(). Thread-safe.
class ConvTuner {
 public:
  // Returns the seconds of each candidate for a settled request, infinity for one that does not
  // run; `rules` converts between layouts.
  using Measure = std::function<std::vector<double>(const Op& op, const Signature& settled,
                                                    std::span<const ConvCandidate> all,
                                                    const KernelTable& rules)>;

  // The cache, if there is one, keeps choices that were timed.
  ConvTuner(const ConvTunerOptions& options, Measure measure, std::optional<ChoiceFile> cache);

  // Returns the kernel for a request: from the cache, else the fastest of all candidates. Nothing:
  // the rules decide, since the seconds are used up, only one kernel can run, or none fits.
  std::optional<ConvCandidate> choose(const Op& op, const Signature& request);

  // Returns all choices so far, for adopt() on other ranks: one line each.
  std::string choices_text() const;
  // From now on chooses what another rank has chosen: nothing is timed, and no cache is read.
  // choose() throws Error where this processor lacks the chosen kernel. Throws Error if the text is
  // not of choices_text().
  void adopt(const std::string& choices);

  // Counts of where choices came from.
  struct Counts {
    std::size_t cached = 0, tuned = 0, adopted = 0;
    std::size_t untimed = 0;  // for which the seconds or the memory did not suffice
    double tuning_seconds = 0;
    std::map<std::string, std::size_t> chosen;  // by the candidate's name
  };
  Counts counts() const;
  void stop();  // from now on nothing is timed, and nothing is added to the cache
  // Returns notes for the user that arose since the last call.
  std::vector<std::string> take_notes();

 private:
  std::string find_out(const std::string& key, const Op& op, const Signature& settled);
  std::optional<std::string> timed(const std::string& key, const Op& op, const Signature& settled);
  bool is_free(const ConvCandidate& candidate, const std::string& key, const Op& op) const;
  std::optional<ConvCandidate> resolve(const Op& op, const Signature& request);
  void keep(const std::string& key, const std::string& name, double seconds);

  ConvCandidates candidates_;
  ConvTunerOptions options_;
  Measure measure_;
  std::optional<ChoiceFile> cache_;
  mutable std::mutex mutex_;
  bool stopped_ = false, adopts_ = false;
  std::map<std::string, std::string> names_;                      // by conv_key()
  std::map<std::string, std::optional<ConvCandidate>> resolved_;  // by key and all operands
  Counts counts_;
  std::vector<std::string> notes_;
};

// Adds rows of convolutions that the tuner serves where it chooses; before the rows of add_kernels,
// which serve the rest.
void add_tuned_rows(KernelTable& table, const std::shared_ptr<ConvTuner>& tuner);

// Returns whether a line of a plan cache or of another rank may name a candidate.
bool is_candidate_name(std::string_view text);

}  // namespace cnn::layers::cpu
