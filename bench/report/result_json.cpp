#include "bench/report/result_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace cnn::bench {

Json new_result(const RunIdentity& run) {
  return {{"program", "cnn_benchmarks"},
          {"format", 2},
          {"version", run.version},
          {"commit", or_null(run.commit)},
          {"command", run.command},
          {"started", utc_text(run.started)},
          {"config", run.config},
          {"machine", nullptr},
          {"mode", nullptr},
          {"batch", nullptr},
          {"model", nullptr},
          {"plan", nullptr},
          {"memory", {{"arena_peak_bytes", nullptr}, {"process_peak_bytes", nullptr}}},
          {"start", nullptr},
          {"resumed_from", nullptr},
          {"steps", Json::array()},
          {"warm_up_losses", Json::array()},
          {"summary", nullptr},
          {"evaluation", Json::array()}};
}

std::string result_text(const Json& result) {
  return result.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string utc_text(std::chrono::system_clock::time_point when) {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(when);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(micros);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (micros - seconds).count());
}

}  // namespace cnn::bench
