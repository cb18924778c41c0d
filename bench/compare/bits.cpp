#include "bench/compare/bits.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unordered_map>
#include <utility>

#include "bench/compare/run.h"
#include "runtime/error.h"

namespace cnn::compare {
namespace {

// The hashes of one step of a run, each tensor once.
class Step {
 public:
  Step(const HashedRun& run, const HashedStep& step) : run_(run) {
    for (const HashedStep::Entry& entry : step.entries) {
      const std::uint64_t key = run.tensors[entry.tensor].key;
      const auto [known, is_new] = by_key_.emplace(key, entry);
      if (is_new) {
        order_.push_back(entry);
      } else if (known->second.hash != entry.hash && !repeated_) {
        repeated_ = BitComparison::First{.tensor = run.tensors[entry.tensor],
                                         .a = known->second.hash,
                                         .b = entry.hash,
                                         .repeated_in = run.path};
      }
    }
  }

  const HashedRun& run() const { return run_; }
  const std::vector<HashedStep::Entry>& in_order() const { return order_; }
  const HashedTensor& tensor(const HashedStep::Entry& entry) const {
    return run_.tensors[entry.tensor];
  }
  const HashedStep::Entry* find(std::uint64_t key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : &found->second;
  }
  // Returns the first value that the run computed twice with different results.
  const std::optional<BitComparison::First>& repeated() const { return repeated_; }

 private:
  const HashedRun& run_;
  std::unordered_map<std::uint64_t, HashedStep::Entry> by_key_;
  std::vector<HashedStep::Entry> order_;
  std::optional<BitComparison::First> repeated_;
};

struct StepComparison {
  BitCounts counts;
  std::size_t only_a = 0;
  std::optional<BitComparison::First> first;
};

StepComparison compare_steps(const Step& a, const Step& b) {
  StepComparison result;
  for (const HashedStep::Entry& mine : a.in_order()) {
    const HashedTensor& tensor = a.tensor(mine);
    const HashedStep::Entry* const theirs = b.find(tensor.key);
    if (theirs == nullptr) {
      ++result.only_a;
      continue;
    }
    if (b.tensor(*theirs).shape != tensor.shape) {
      throw Error(fmt::format("{} is {} in {} and {} in {}: these are different networks",
                              tensor.name, tensor.shape, a.run().path, b.tensor(*theirs).shape,
                              b.run().path));
    }
    ++result.counts.compared;
    if (mine.hash == theirs->hash) {
      continue;
    }
    ++result.counts.different;
    ++result.counts.different_by_op[tensor.op];
    if (!result.first) {
      result.first = BitComparison::First{
          .tensor = tensor, .a = mine.hash, .b = theirs->hash, .repeated_in = {}};
    }
  }
  if (!result.first) {
    result.first = a.repeated() ? a.repeated() : b.repeated();
  }
  return result;
}

// Checks the settings that two runs must share for comparable tensors.
void check_comparable(const HashedRun& a, const HashedRun& b) {
  const auto differ = [&](std::string_view what, std::initializer_list<const char*> keys) {
    const std::string in_a = text_at(a.head, keys), in_b = text_at(b.head, keys);
    check(in_a == in_b, fmt::format("{} and {} cannot be compared: {} {} and {}", a.path, b.path,
                                    what, in_a, in_b));
  };
  differ("model", {"model", "name"});
  differ("data set", {"model", "data_set"});
  differ("image size", {"model", "image_size"});
  differ("classes", {"model", "classes"});
  differ("--batch_size", {"batch_size"});
  differ("precision", {"plan", "precision"});
  differ("mode", {"mode"});
}

std::vector<std::string> notes_on(const HashedRun& a, const HashedRun& b) {
  std::vector<std::string> notes;
  if (a.head.contains("config") && b.head.contains("config")) {
    notes = unlike_flags(a.head.at("config"), b.head.at("config"));
  }
  const auto add = [&](std::string_view what, std::initializer_list<const char*> keys) {
    const std::string in_a = text_at(a.head, keys), in_b = text_at(b.head, keys);
    if (in_a != in_b) {
      notes.push_back(fmt::format("{}: {} before, {} now", what, in_a, in_b));
    }
  };
  add("commit", {"commit"});
  add("processor", {"machine", "cpu", "name"});
  add("cores", {"machine", "cpu", "cores_used"});
  add("instruction sets", {"machine", "cpu", "instruction_sets"});
  add("GPU", {"machine", "gpu", "name"});
  add("layout", {"plan", "layout"});
  add("libraries", {"machine", "libraries"});
  for (const HashedRun* run : {&a, &b}) {
    if (run->cut_off) {
      notes.push_back(fmt::format("{} ends inside a step, which is left out", run->path));
    }
  }
  return notes;
}

std::string by_op(const BitCounts& counts) {
  std::vector<std::pair<std::string, std::size_t>> ops(counts.different_by_op.begin(),
                                                       counts.different_by_op.end());
  std::ranges::stable_sort(ops, std::ranges::greater(),
                           &std::pair<std::string, std::size_t>::second);
  std::vector<std::string> words;
  words.reserve(ops.size());
  for (const auto& [op, count] : ops) {
    words.push_back(fmt::format("{} {}", op, count));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string place_text(const HashedTensor& tensor) {
  return fmt::format("{}: output {} of node {}, op {}, {}{}{}", tensor.name, tensor.output,
                     tensor.node, tensor.op, tensor.stored, tensor.layer.empty() ? "" : ", of ",
                     tensor.layer);
}

std::string first_text(const HashedRun& a, const HashedRun& b, const BitComparison& comparison) {
  const BitComparison::First& first = *comparison.first;
  if (!first.repeated_in.empty()) {
    return fmt::format(
        "{} computed one value twice in step {}, with two results: {:016x}, then "
        "{:016x} in {}\n",
        first.repeated_in, comparison.step, first.a, first.b, place_text(first.tensor));
  }
  return fmt::format("{} and {} differ first in step {}, in {}: {:016x} and {:016x}\n", a.path,
                     b.path, comparison.step, place_text(first.tensor), first.a, first.b);
}

}  // namespace

BitComparison compare_bits(const HashedRun& a, const HashedRun& b) {
  check_comparable(a, b);
  BitComparison comparison{.notes = notes_on(a, b)};
  std::unordered_map<std::int64_t, const HashedStep*> steps_of_b;
  for (const HashedStep& step : b.steps) {
    steps_of_b.emplace(step.number, &step);
  }
  for (const HashedStep& step : a.steps) {
    const auto other = steps_of_b.find(step.number);
    if (other == steps_of_b.end()) {
      continue;
    }
    const Step of_a(a, step), of_b(b, *other->second);
    const StepComparison found = compare_steps(of_a, of_b);
    check(found.counts.compared > 0,
          fmt::format("{} and {} have no tensor in common: these are different networks", a.path,
                      b.path));
    comparison.different_steps += found.first ? 1 : 0;
    if (comparison.steps++ == 0) {
      comparison.only_a = found.only_a;
      comparison.only_b = compare_steps(of_b, of_a).only_a;
    }
    const bool is_first_difference = found.first && !comparison.first;
    if (comparison.steps == 1 || is_first_difference) {
      comparison.step = step.number;
      comparison.counts = found.counts;
      comparison.first = found.first;
    }
  }
  check(comparison.steps > 0,
        fmt::format("{} and {} have no step in common: {} has {} to {}, {} has {} to {}; see "
                    "--hash_steps",
                    a.path, b.path, a.path, a.steps.front().number, a.steps.back().number, b.path,
                    b.steps.front().number, b.steps.back().number));
  return comparison;
}

std::string bits_text(const HashedRun& a, const HashedRun& b, const BitComparison& comparison) {
  const BitCounts& counts = comparison.counts;
  std::string text;
  if (!comparison.first) {
    text = fmt::format("{} and {} are equal bit by bit: {} tensors in each of {} steps\n", a.path,
                       b.path, counts.compared, comparison.steps);
  } else {
    text = first_text(a, b, comparison);
    if (counts.different > 0) {
      text += fmt::format("{} of {} tensors differ in step {}: {}\n", counts.different,
                          counts.compared, comparison.step, by_op(counts));
    }
    text += fmt::format("{} of {} steps differ\n", comparison.different_steps, comparison.steps);
  }
  const auto add_only = [&](const HashedRun& run, std::size_t count) {
    if (count > 0) {
      text += fmt::format(
          "{} more tensors of a step are in {} only: its plan computes some values "
          "in another way\n",
          count, run.path);
    }
  };
  add_only(a, comparison.only_a);
  add_only(b, comparison.only_b);
  if (a.steps.size() != b.steps.size()) {
    text += fmt::format("{} has {} hashed steps, {} has {}; {} were compared\n", a.path,
                        a.steps.size(), b.path, b.steps.size(), comparison.steps);
  }
  for (const std::string& note : comparison.notes) {
    text += fmt::format("note: {}\n", note);
  }
  return text;
}

int exit_code_of(const BitComparison& comparison) { return comparison.first ? 1 : 0; }

}  // namespace cnn::compare
