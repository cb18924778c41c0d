#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags/member.h"

namespace cnn::bench {

// The treatment of a flag whose value differs from its default. A flag that the program starts to
// support gets a member in its row.
enum class FlagSupport : std::uint8_t {
  honoured,  // has its documented effect
  accepted,  // cannot matter here: one notice with the reason, Flag::note
  rejected,  // never works here: an error with the alternative, Flag::note
};

// The range of a number. It includes at_least and at_most, and ends before `below` if that is set.
struct Limits {
  double at_least = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
  std::optional<double> below{};
};

constexpr Limits at_least(double least) { return {.at_least = least}; }
constexpr Limits between(double least, double most) { return {.at_least = least, .at_most = most}; }
constexpr Limits from_to_below(double least, double below) {
  return {.at_least = least, .below = below};
}

// A condition under which a supported flag has no effect.
struct NoEffectRule {
  bool (*when)(const Config&) = nullptr;
  std::string_view line{};  // for stderr, once for all set flags that share it
};

// One row. A supported flag names its member, which defines type and default. Another flag states
// both itself: {name, type, usual, support, note, help}.
struct Flag {
  std::string_view name;
  Type type = Type::text;
  std::string_view usual{};  // the default as text, None if it is unset
  FlagSupport support = FlagSupport::honoured;
  std::string_view note{};  // for accepted: what happens instead; for rejected: the alternative
  std::string_view help{};
  Limits range{};
  std::string_view choices{};  // words separated by bars; empty = any. A trailing bar allows ''
  const Member* member = nullptr;
  std::string_view renamed_to{};  // this row is an older name of that flag
  NoEffectRule no_effect[3]{};    // of a flag with a member; unused entries have no `when`
  // It acts on steps as they run: not with --simulate and the like, which make a plan at most.
  bool needs_steps = false;
  // For completion: the known values of a flag without a fixed choice.
  std::vector<std::string> (*known)() = nullptr;
};

struct FlagGroup {
  std::string_view name;
  std::string_view title;  // heading in the help
  std::span<const Flag> flags;
};

// One function per file of rows; flag_groups() returns all of them, in the order of the help.
std::vector<FlagGroup> run_flags();       // mode, size, eval, report, checkpoint, profile
std::vector<FlagGroup> data_flags();      // input, data
std::vector<FlagGroup> machine_flags();   // device, cpu, gpu, fp16
std::vector<FlagGroup> runtime_flags();   // runtime
std::vector<FlagGroup> learning_flags();  // optim
std::vector<FlagGroup> parallel_flags();  // reduce, dist, allreduce_bench, ibm
std::vector<FlagGroup> lms_flags();       // lms, lms_policies, lms_device
std::vector<FlagGroup> other_flags();     // ours, legacy, absl, test
std::span<const FlagGroup> flag_groups();

// Returns the row of that name, or nullptr.
const Flag* find_flag(std::string_view name);

// Returns the row whose value the flag sets: itself, or for an older name the current flag's.
const Flag& meant_by(const Flag& flag);

Type type_of(const Flag& flag);

// Returns "bool", "int", "float", "enum", "string" or "list".
std::string_view type_name(const Flag& flag);

// Returns the allowed words; empty if any is allowed.
std::vector<std::string> choices_of(const Flag& flag);

Plain default_value(const Flag& flag);

// Parses the text as a value of the flag. Throws Error("FATAL Flags parsing error: ...") on junk,
// overflow, a word outside choices or a number outside its range.
Plain parse_value(const Flag& flag, const std::string& text);

// Returns a value in command line syntax: True, 10, 0.5, text, a,b, None.
std::string to_text(const Plain& value);

}  // namespace cnn::bench
