#include "bench/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "bench/compare/interleaved.h"

namespace cnn::compare {
namespace {

constexpr std::size_t min_runs = 3;      // minimum per side after excluding disturbed ones
constexpr std::size_t advised_runs = 5;  // per side, while the scatter is unknown
constexpr std::size_t max_runs = 200;

std::vector<std::string> turns_of(const std::vector<Run>& runs) {
  std::vector<std::string> turns;
  turns.reserve(runs.size());
  for (const Run& run : runs) {
    turns.push_back(run.turns);
  }
  return turns;
}

// Returns for each base run the new run that it took turns with; nothing unless all have a partner.
std::optional<std::vector<std::size_t>> partners(const Configuration& configuration) {
  const std::vector<std::string> base = turns_of(configuration.base);
  const std::set<std::string> names(base.begin(), base.end());
  if (base.size() != configuration.candidate.size() || names.size() != base.size() ||
      names.contains("")) {
    return std::nullopt;
  }
  std::vector<std::size_t> partner;
  for (const Run& run : configuration.base) {
    const auto found = std::ranges::find(configuration.candidate, run.turns, &Run::turns);
    if (found == configuration.candidate.end() || !may_be_interleaved(run.steps, found->steps)) {
      return std::nullopt;
    }
    partner.push_back(static_cast<std::size_t>(found - configuration.candidate.begin()));
  }
  return partner;
}

Side side_of(const std::vector<Run>& runs) {
  Side side;
  for (const Run& run : runs) {
    side.runs.push_back(summarise(run.steps));
    side.counts.push_back(!side.runs.back().disturbed_run);
  }
  return side;
}

bool has_enough(const Side& side) { return side.counted() >= std::min(min_runs, side.runs.size()); }

void count_all(Side& side) { side.counts.assign(side.runs.size(), true); }

std::vector<double> log_seconds(const Side& side) {
  std::vector<double> values;
  for (std::size_t i = 0; i < side.runs.size(); ++i) {
    if (side.counts[i]) {
      values.push_back(std::log(side.runs[i].seconds));
    }
  }
  return values;
}

void add_speed(Side& side, double images_per_step) {
  double sum = 0;
  const std::vector<double> values = log_seconds(side);
  for (const double value : values) {
    sum += value;
  }
  side.seconds = std::exp(sum / static_cast<double>(values.size()));
  side.images_per_sec = images_per_step / side.seconds;
}

void note_left_out(Finding& finding) {
  const std::size_t base = finding.base.runs.size() - finding.base.counted();
  const std::size_t candidate = finding.candidate.runs.size() - finding.candidate.counted();
  if (base + candidate > 0) {
    finding.notes.push_back(fmt::format(
        "{} of the base's and {} of the new runs do not count: other work or throttling "
        "disturbed more than half of their steps",
        base, candidate));
  }
}

// Returns the difference of each pair by its turns; nothing for pairs without comparable turns.
// partner: see partners().
std::vector<std::optional<double>> by_turns(const Configuration& configuration,
                                            const std::vector<std::size_t>& partner) {
  std::vector<std::optional<double>> slowdowns;
  for (std::size_t i = 0; i < partner.size(); ++i) {
    slowdowns.push_back(interleaved_slowdown(configuration.base[i].steps,
                                             configuration.candidate[partner[i]].steps));
  }
  return slowdowns;
}

// A pair counts or is excluded as a whole, since the same other work ran beside both runs. A pair
// compared by turns always counts, since neighbouring turns were disturbed equally.
void count_pairs(const std::vector<std::optional<double>>& slowdowns, Side& base, Side& candidate) {
  for (std::size_t i = 0; i < slowdowns.size(); ++i) {
    base.counts[i] = candidate.counts[i] = slowdowns[i] || (base.counts[i] && candidate.counts[i]);
  }
  if (!has_enough(base)) {
    count_all(base);
    count_all(candidate);
  }
}

void pair_up(const Configuration& configuration, const std::vector<std::size_t>& partner,
             Finding& finding) {
  Side candidate;
  for (const std::size_t run : partner) {
    candidate.runs.push_back(finding.candidate.runs[run]);
    candidate.counts.push_back(finding.candidate.counts[run]);
  }
  finding.candidate = candidate;
  const std::vector<std::optional<double>> slowdowns = by_turns(configuration, partner);
  count_pairs(slowdowns, finding.base, finding.candidate);
  std::size_t by_medians = 0;
  for (std::size_t i = 0; i < slowdowns.size(); ++i) {
    if (finding.base.counts[i]) {
      by_medians += slowdowns[i] ? 0 : 1;
      finding.slowdowns.push_back(slowdowns[i].value_or(
          std::log(finding.candidate.runs[i].seconds / finding.base.runs[i].seconds)));
    }
  }
  finding.difference = paired_difference(finding.slowdowns);
  note_left_out(finding);
  if (by_medians > 0) {
    finding.notes.push_back(
        fmt::format("{} of {} pairs are compared by the medians of their runs, which scatter more "
                    "than turns: too few turns, or a program that does not say when steps end",
                    by_medians, finding.slowdowns.size()));
  }
  add_speed(finding.base, configuration.base.front().images_per_step);
  add_speed(finding.candidate, configuration.candidate.front().images_per_step);
}

// Applies one rule to both sides, since disturbed runs on one side against undisturbed ones on the
// other would measure the machine's other work. If both sides keep enough undisturbed runs,
// disturbed runs are excluded on both; otherwise they count on both. If both sides were disturbed
// throughout, the disturbance is normal for this machine and shows as scatter.
void compare_sides(const Configuration& configuration, Finding& finding) {
  const bool base_enough = has_enough(finding.base), fresh_enough = has_enough(finding.candidate);
  finding.one_side_disturbed = base_enough != fresh_enough;
  if (finding.one_side_disturbed) {
    finding.notes.push_back(fmt::format(
        "other work or throttling disturbed {} of the {} base runs and {} of the {} new runs: all "
        "count, and their difference is not the program's alone; run again on a quiet machine",
        finding.base.runs.size() - finding.base.counted(), finding.base.runs.size(),
        finding.candidate.runs.size() - finding.candidate.counted(),
        finding.candidate.runs.size()));
  }
  if (!base_enough || !fresh_enough) {
    count_all(finding.base);
    count_all(finding.candidate);
  }
  finding.difference =
      independent_difference(log_seconds(finding.base), log_seconds(finding.candidate));
  note_left_out(finding);
  add_speed(finding.base, configuration.base.front().images_per_step);
  add_speed(finding.candidate, configuration.candidate.front().images_per_step);
}

Finding measure(const Configuration& configuration) {
  Finding finding{.label = configuration.label,
                  .base = side_of(configuration.base),
                  .candidate = side_of(configuration.candidate)};
  if (const auto partner = partners(configuration)) {
    pair_up(configuration, *partner, finding);
  } else {
    compare_sides(configuration, finding);
    const std::vector<std::string> turns = turns_of(configuration.base);
    if (std::ranges::any_of(turns, [](const std::string& name) { return !name.empty(); })) {
      finding.notes.emplace_back(
          "runs took turns, but not each with one of the other side: compared as independent");
    }
  }
  for (const std::string& line : unlike_surroundings(configuration)) {
    finding.notes.push_back(line);
  }
  return finding;
}

// The criteria of a verdict; the confidence is corrected for the number of configurations.
struct Criteria {
  Settings settings;
  double corrected_confidence = 0;
};

bool shows_no_regression(const Difference& difference, const Settings& settings) {
  return difference.upper(settings.confidence) < std::log1p(excluded_slowdown(settings));
}

bool shows_regression(const Difference& difference, const Criteria& criteria) {
  return difference.estimate >= std::log1p(criteria.settings.minimum_effect) &&
         difference.lower(criteria.corrected_confidence) > 0;
}

// Returns the smallest number of runs, added to both sides, for a verdict, if estimate and scatter
// stay; nothing if max_runs on the larger side would not suffice.
std::optional<std::size_t> missing_runs(const Difference& difference, std::size_t base_runs,
                                        std::size_t fresh_runs, const Criteria& criteria) {
  const std::size_t fewer = std::min(base_runs, fresh_runs);
  if (std::isinf(difference.error)) {
    return advised_runs - std::min(fewer, advised_runs - 1);
  }
  const std::size_t least = fewer < 2 ? 2 - fewer : 1;  // one run has no scatter
  for (std::size_t more = least; std::max(base_runs, fresh_runs) + more <= max_runs; ++more) {
    const Difference then = with_runs(difference, base_runs + more, fresh_runs + more);
    if (shows_no_regression(then, criteria.settings) || shows_regression(then, criteria)) {
      return more;
    }
  }
  return std::nullopt;
}

std::vector<double> undisturbed_log_seconds(const Side& side) {
  std::vector<double> values;
  for (const RunSummary& run : side.runs) {
    if (!run.disturbed_run) {
      values.push_back(std::log(run.seconds));
    }
  }
  return values;
}

// If one side was disturbed: returns the runs for a "no regression" verdict between undisturbed
// runs of one program that scatter like the undisturbed side. A side keeps min_runs.
std::optional<std::size_t> missing_undisturbed_runs(const Finding& finding,
                                                    const Criteria& criteria) {
  const std::vector<double> base = undisturbed_log_seconds(finding.base);
  const std::vector<double> candidate = undisturbed_log_seconds(finding.candidate);
  const std::vector<double>& quiet = base.size() > candidate.size() ? base : candidate;
  const std::size_t fewer = std::min(base.size(), candidate.size());
  const std::optional<std::size_t> more =
      missing_runs(independent_difference(quiet, quiet), base.size(), candidate.size(), criteria);
  return more ? std::optional(std::max(*more, min_runs - std::min(fewer, min_runs))) : std::nullopt;
}

void decide(Finding& finding, const Settings& settings, std::size_t configurations) {
  const double level = 1 - settings.confidence;
  const double effect = std::log1p(settings.minimum_effect);
  const Difference& difference = finding.difference;
  const Criteria criteria{settings, 1 - level / static_cast<double>(configurations)};
  if (finding.one_side_disturbed) {
    finding.more_runs = missing_undisturbed_runs(finding, criteria);
  } else if (finding.p_slower <= level && difference.estimate >= effect) {
    finding.verdict = Verdict::regression;
  } else if (finding.p_faster <= level && difference.estimate <= -effect) {
    finding.verdict = Verdict::improvement;
  } else if (shows_no_regression(difference, settings)) {
    finding.verdict = Verdict::no_regression;
  } else {
    finding.more_runs =
        missing_runs(difference, finding.base.counted(), finding.candidate.counted(), criteria);
  }
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::no_regression:
      return "no regression";
    case Verdict::improvement:
      return "improvement";
    case Verdict::regression:
      return "regression";
    case Verdict::inconclusive:
      break;
  }
  return "cannot tell";
}

double excluded_slowdown(const Settings& settings) {
  return std::max(settings.resolution, settings.minimum_effect);
}

std::size_t Side::counted() const {
  return static_cast<std::size_t>(std::ranges::count(counts, true));
}

double percent(double log_difference) { return 100 * std::expm1(log_difference); }

std::vector<Finding> judge(const std::vector<Configuration>& configurations,
                           const Settings& settings) {
  std::vector<Finding> findings;
  std::vector<double> slower, faster;
  for (const Configuration& configuration : configurations) {
    findings.push_back(measure(configuration));
    slower.push_back(findings.back().difference.p_slower());
    faster.push_back(findings.back().difference.p_faster());
  }
  const std::vector<double> slower_of_all = holm(slower), faster_of_all = holm(faster);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    findings[i].p_slower = slower_of_all[i];
    findings[i].p_faster = faster_of_all[i];
    decide(findings[i], settings, findings.size());
  }
  return findings;
}

int exit_code_of(const std::vector<Finding>& findings) {
  const auto has = [&](Verdict verdict) {
    return std::ranges::find(findings, verdict, &Finding::verdict) != findings.end();
  };
  if (has(Verdict::regression)) {
    return 1;
  }
  return has(Verdict::inconclusive) ? 2 : 0;
}

}  // namespace cnn::compare
