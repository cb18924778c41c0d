#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bench/flags/config.h"

namespace cnn::bench {

// Where a flag's value goes. The alternative is the flag's type; an optional is "unset" by default.
using Target = std::variant<bool*, int*, std::int64_t*, double*, std::string*, std::optional<bool>*,
                            std::optional<int>*, std::optional<double>*,
                            std::optional<std::string>*, std::vector<std::string>*>;

// What happens when a flag gets another value than its default. Enabling a flag that the program
// has learned to obey is changing `later` to `honoured`.
enum class Treatment : std::uint8_t {
  honoured,  // it does what it says
  accepted,  // it cannot matter here: one notice, Flag::note says why
  rejected,  // it never will work here: an error, Flag::note says what to use
  later,     // not in this version: an error, Flag::note says what to use meanwhile
};

struct Flag {
  std::string_view name;
  Target (*target)(Config&) = nullptr;
  std::string_view help;
  Treatment treatment = Treatment::honoured;
  std::string_view note{};     // for accepted: the reason; for rejected and later: the alternative
  std::string_view choices{};  // words between bars; empty = any. A trailing bar allows ''
  std::string_view renamed_to{};                               // this is an older name of that flag
  double at_least = -std::numeric_limits<double>::infinity();  // numbers only, both ends inclusive
  double at_most = std::numeric_limits<double>::infinity();
};

// The target of a row: reaches<&Config::model>.
template <auto member>
Target reaches(Config& config) {
  return &(config.*member);
}

struct FlagGroup {
  std::string_view name;
  std::string_view title;  // heading in the help
  std::span<const Flag> flags;
};

// One function per file of rows; flag_groups() is all of them, in the order of the help.
std::vector<FlagGroup> run_flags();       // mode, size, eval, report, checkpoint, profile
std::vector<FlagGroup> data_flags();      // input, data
std::vector<FlagGroup> machine_flags();   // device, cpu, gpu, fp16
std::vector<FlagGroup> runtime_flags();   // runtime
std::vector<FlagGroup> learning_flags();  // optim
std::vector<FlagGroup> parallel_flags();  // reduce, dist, allreduce_bench, lms
std::vector<FlagGroup> other_flags();     // ours, legacy, absl, test
std::vector<FlagGroup> flag_groups();

// The row of that name, or nullptr.
const Flag* find_flag(std::string_view name);

// Sets the flag from text. Throws Error("FATAL Flags parsing error: ...") on junk, overflow, a word
// outside choices or a number outside its range.
void assign(const Flag& flag, const std::string& text, Config& config);

// A flag's value without its C++ type: monostate is "unset".
using Plain =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::string>>;
Plain plain_value(const Flag& flag, const Config& config);

// "bool", "int", "float", "enum", "string" or "list".
std::string_view type_name(const Flag& flag);

// A value as the command line writes it: True, 10, 0.5, text, a,b, None.
std::string to_text(const Plain& value);

}  // namespace cnn::bench
