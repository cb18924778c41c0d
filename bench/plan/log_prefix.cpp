#include "bench/plan/log_prefix.h"

#include <algorithm>
#include <array>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace cnn::bench {
namespace {

// The source line that the original's log names for each of its lines.
struct Origin {
  std::string_view policy, place;
};
constexpr std::array<Origin, 2> origins{
    {{"tflms2", "lms.py:1275"}, {"caffe", "syncedmem.cpp:349"}}};

}  // namespace

std::string log_prefix(std::string_view policy, std::chrono::system_clock::time_point when,
                       int thread) {
  const auto* const origin = std::ranges::find(origins, policy, &Origin::policy);
  if (origin == origins.end()) {
    return {};
  }
  const auto whole = std::chrono::floor<std::chrono::seconds>(when);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(when - whole).count();
  const std::tm local = fmt::localtime(std::chrono::system_clock::to_time_t(whole));
  return fmt::format("I{:%m%d %H:%M:%S}.{:06} {:5} {}] ", local, rest, thread, origin->place);
}

}  // namespace cnn::bench
