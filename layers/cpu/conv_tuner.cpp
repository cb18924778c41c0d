#include "layers/cpu/conv_tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <utility>

#include "layers/conv.h"
#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn::layers::cpu {
namespace {

constexpr std::string_view by_rules = "rules";  // the name where no candidate was chosen

template <class O>
void add_row(KernelTable& table, const std::shared_ptr<ConvTuner>& tuner, Provider by) {
  table.add<O>(
      [tuner, by](const O& op, const Signature& request) -> std::optional<KernelSpec> {
        const std::optional<ConvCandidate> chosen = tuner->choose(op, request);
        return chosen && chosen->spec.by == by ? std::optional(chosen->spec) : std::nullopt;
      },
      [tuner](const O& op, const Signature& s) {
        return tuner->choose(op, s).value().table->make(op, s);
      },
      by);
}

}  // namespace

ConvTuner::ConvTuner(const ConvTunerOptions& options, Measure measure,
                     std::optional<ChoiceFile> cache)
    : candidates_(options.isa, options.winograd),
      options_(options),
      measure_(std::move(measure)),
      cache_(std::move(cache)) {}

std::optional<ConvCandidate> ConvTuner::choose(const Op& op, const Signature& request) {
  const std::scoped_lock lock(mutex_);
  const std::string all = conv_key(op, request) + " " + to_string(request);
  if (const auto found = resolved_.find(all); found != resolved_.end()) {
    return found->second;
  }
  std::optional<ConvCandidate> chosen = resolve(op, request);
  resolved_.emplace(all, chosen);
  return chosen;
}

std::optional<ConvCandidate> ConvTuner::resolve(const Op& op, const Signature& request) {
  const std::optional<Signature> settled = candidates_.settled(op, request);
  if (!settled) {
    return std::nullopt;
  }
  const std::string key = conv_key(op, *settled);
  if (!names_.contains(key)) {
    const std::string name = find_out(key, op, *settled);
    names_.emplace(key, name);
    ++counts_.chosen[name];
  }
  const std::string& name = names_.at(key);
  if (name == by_rules) {
    return std::nullopt;
  }
  std::optional<ConvCandidate> chosen = candidates_.offer(name, op, *settled);
  check(chosen.has_value(), "no kernel of this processor is " + name + " for " + key +
                                ", which rank 0 has chosen; use processors of one kind for all "
                                "ranks, or leave out --tune");
  // The kernel is asked for again in its own layouts, and the answer must be the same.
  names_.emplace(conv_key(op, {.in = chosen->spec.in, .out = chosen->spec.out}), name);
  return chosen;
}

// Requests in the layouts of a candidate must not have another choice already.
bool ConvTuner::is_free(const ConvCandidate& candidate, const std::string& key,
                        const Op& op) const {
  const std::string own = conv_key(op, {.in = candidate.spec.in, .out = candidate.spec.out});
  const auto found = names_.find(own);
  return own == key || found == names_.end() || found->second == candidate.name;
}

std::string ConvTuner::find_out(const std::string& key, const Op& op, const Signature& settled) {
  if (adopts_) {  // adopt() has filled names_; the rank that was asked never met this request
    return std::string(by_rules);
  }
  const ChoiceFile::Entry* const entry =
      cache_ ? cache_->find(key + (options_.winograd ? "" : " nowinograd")) : nullptr;
  if (entry != nullptr) {
    const std::optional<ConvCandidate> known = candidates_.offer(entry->choice, op, settled);
    if (known && is_free(*known, key, op)) {
      ++counts_.cached;
      return known->name;
    }
    notes_.push_back("plan cache: " + entry->choice + " for " + key +
                     " is not used: no kernel of that name runs it here");
  }
  return timed(key, op, settled).value_or(std::string(by_rules));
}

std::optional<std::string> ConvTuner::timed(const std::string& key, const Op& op,
                                            const Signature& settled) {
  std::vector<ConvCandidate> all = candidates_.offers(op, settled);
  std::erase_if(all, [&](const ConvCandidate& each) { return !is_free(each, key, op); });
  if (all.size() < 2) {
    return std::nullopt;
  }
  if (stopped_ || counts_.tuning_seconds >= options_.seconds) {
    counts_.untimed += stopped_ ? 0 : 1;
    return std::nullopt;
  }
  const auto start = std::chrono::steady_clock::now();
  const std::vector<double> seconds = measure_(op, settled, all, candidates_.rules());
  counts_.tuning_seconds += seconds_since(start);
  const auto best = std::ranges::min_element(seconds);
  if (best == seconds.end() || !std::isfinite(*best)) {
    ++counts_.untimed;
    return std::nullopt;
  }
  ++counts_.tuned;
  const std::string& name = all[static_cast<std::size_t>(best - seconds.begin())].name;
  keep(key, name, *best);
  return name;
}

void ConvTuner::keep(const std::string& key, const std::string& name, double seconds) {
  if (!cache_) {
    return;
  }
  try {
    cache_->store(key + (options_.winograd ? "" : " nowinograd"),
                  {.choice = name, .seconds = seconds});
  } catch (const Error& error) {
    notes_.push_back(std::string("plan cache: nothing more is kept: ") + error.what());
    cache_.reset();
  }
}

std::string ConvTuner::choices_text() const {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (const auto& [key, name] : names_) {
    text.append(key).append("\t").append(name).append("\n");
  }
  return text;
}

void ConvTuner::adopt(const std::string& choices) {
  const std::scoped_lock lock(mutex_);
  std::map<std::string, std::string> names;
  std::istringstream lines(choices);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = std::min(line.find('\t'), line.size() - 1);
    const std::string name = line.substr(end + 1);
    check(is_candidate_name(name), "rank 0's choices of kernels cannot be read: " + line);
    names.insert_or_assign(line.substr(0, end), name);
  }
  names_ = std::move(names);
  resolved_.clear();
  cache_.reset();
  counts_ = {.adopted = names_.size()};
  adopts_ = stopped_ = true;
}

ConvTuner::Counts ConvTuner::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void ConvTuner::stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
}

std::vector<std::string> ConvTuner::take_notes() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(notes_, {});
}

void add_tuned_rows(KernelTable& table, const std::shared_ptr<ConvTuner>& tuner) {
  for (const Provider by : {Provider::own, Provider::onednn}) {
    add_row<Conv2d>(table, tuner, by);
    add_row<Conv2dBackwardData>(table, tuner, by);
    add_row<Conv2dBackwardWeights>(table, tuner, by);
  }
}

bool is_candidate_name(std::string_view text) {
  constexpr std::size_t most = 64;
  return !text.empty() && text.size() <= most && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == ' ' || c == '>';
  });
}

}  // namespace cnn::layers::cpu
