#include "bench/flags/fault_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <sstream>
#include <string_view>
#include <vector>

#include "runtime/error.h"
#include "runtime/spelling.h"

namespace cnn::bench {
namespace {

constexpr std::array<std::string_view, 5> simple_faults{"exit", "kill", "stop", "corrupt", "flip"};

struct NumberPart {
  std::string_view key;
  int FaultSpec::*member;
  int least;
};
constexpr std::array<NumberPart, 4> number_parts{{{"rank", &FaultSpec::rank, 0},
                                                  {"bucket", &FaultSpec::bucket, 0},
                                                  {"step", &FaultSpec::step, 1},
                                                  {"after", &FaultSpec::after, 0}}};

[[noreturn]] void refuse_fault(const std::string& spec, std::string_view why) {
  throw Error(fmt::format("--comm_fault={}: {}", spec, why));
}

// Parses digits only, within the range of an int.
bool read_number(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_delay(std::string_view text, int& milliseconds) {
  const bool short_unit = text.ends_with("ms");
  if (!short_unit && !text.ends_with("s")) {
    return false;
  }
  text.remove_suffix(short_unit ? 2 : 1);
  constexpr int max_seconds = 86'400;
  if (!read_number(text, milliseconds) || milliseconds < 0 ||
      (!short_unit && milliseconds > max_seconds)) {
    return false;
  }
  milliseconds *= short_unit ? 1 : 1000;
  return true;
}

void read_what(const std::string& spec, const std::string& value, FaultSpec& fault) {
  fault.what = value.substr(0, value.find(':'));
  const bool right = fault.what == "delay"
                         ? value.size() > fault.what.size() &&
                               read_delay(value.substr(fault.what.size() + 1), fault.milliseconds)
                         : std::ranges::find(simple_faults, value) != simple_faults.end();
  if (!right) {
    const std::vector<std::string> known(simple_faults.begin(), simple_faults.end());
    refuse_fault(spec,
                 fmt::format("what={}: must be exit, kill, stop, corrupt, flip or a delay such "
                             "as delay:200ms{}",
                             value, did_you_mean(value, known)));
  }
}

void read_part(const std::string& spec, const std::string& part, FaultSpec& fault) {
  const std::size_t equals = std::min(part.find('='), part.size());
  const std::string key = part.substr(0, equals);
  const std::string value = part.substr(std::min(equals + 1, part.size()));
  if (key == "what") {
    read_what(spec, value, fault);
    return;
  }
  if (key == "tensor") {
    fault.tensor = value;
    return;
  }
  const auto* const row = std::ranges::find(number_parts, key, &NumberPart::key);
  if (row == number_parts.end()) {
    refuse_fault(
        spec, fmt::format("it has no '{}', only rank, what, bucket, step, after and tensor", key));
  }
  int number = 0;
  if (!read_number(value, number) || number < row->least) {
    refuse_fault(spec,
                 fmt::format("{}={}: must be a whole number from {} on", key, value, row->least));
  }
  fault.*row->member = number;
}

}  // namespace

FaultSpec parse_fault_spec(const std::string& spec) {
  FaultSpec fault;
  std::istringstream parts(spec);
  for (std::string part; std::getline(parts, part, ',');) {
    read_part(spec, part, fault);
  }
  if (fault.rank < 0 || fault.what.empty()) {
    refuse_fault(spec, "it needs a rank and a fault to inject, such as rank=1,what=kill");
  }
  const bool flips = fault.what == "flip";
  if (!flips && !fault.tensor.empty()) {
    refuse_fault(spec, "tensor is for what=flip only");
  }
  if (flips && (fault.bucket != 0 || fault.after != 0)) {
    refuse_fault(spec, "what=flip has a step and a tensor, no bucket and no after");
  }
  return fault;
}

bool flips_a_bit(const std::optional<std::string>& spec) {
  try {
    return spec && parse_fault_spec(*spec).what == "flip";
  } catch (const Error&) {
    return false;
  }
}

}  // namespace cnn::bench
