#include "bench/page/tiles.h"

#include <fmt/format.h>

#include "bench/page/chart.h"
#include "bench/page/json_text.h"
#include "bench/page/units.h"

namespace cnn::page {
namespace {

std::string tile(const std::string& value, const std::string& name) {
  return value.empty() ? std::string()
                       : fmt::format("<div><b>{}</b>{}</div>\n", escaped(value), escaped(name));
}

// Returns "40 of 200"; empty if the run lacks the count.
std::string disturbed_of(const Json& json) {
  const auto disturbed = number_at(json, {"summary", "disturbed_steps"});
  return disturbed ? fmt::format("{:.0f} of {}", *disturbed, at(json, {"steps"}).size()) : "";
}

// Returns the results of the last evaluation.
std::string evaluation_tiles(const Json& json) {
  const Json& evaluations = at(json, {"evaluation"});
  if (!evaluations.is_array() || evaluations.empty()) {
    return {};
  }
  const auto number = [&evaluations](const char* key, int digits) {
    const auto value = number_at(evaluations.back(), {key});
    return value ? fmt::format("{:.{}f}", *value, digits) : std::string();
  };
  return tile(number("top_1", 4), "accuracy @ 1") + tile(number("top_5", 4), "accuracy @ 5") +
         tile(number("base_loss", 4), "base loss of the evaluation") +
         tile(number("images_per_sec", 2), "images/sec of the evaluation");
}

// Returns the prediction of --simulate and its limits.
std::string simulation_tiles(const Json& json) {
  const Json& simulation = at(json, {"simulation"});
  if (!simulation.is_object()) {
    return {};
  }
  const auto number = [&simulation](const char* key, const char* form, double unit = 1) {
    const auto value = number_at(simulation, {key});
    return value ? fmt::format(fmt::runtime(form), unit * *value) : std::string();
  };
  const auto arena = number_at(json, {"plan", "arena_bytes"});
  const auto limit = number_at(simulation, {"memory_limit"});
  const bool with_lms = at(json, {"plan", "lms"}).is_object();
  const bool of_evaluation = text_of(at(json, {"mode"})) == "evaluation" &&
                             number_at(json, {"config", "eval_batch_size"}).value_or(0) > 0;
  return tile(number("images_per_sec", "{:.1f}"), "predicted images/sec") +
         tile(number("step_seconds", "{:.3f} ms", 1e3), "predicted step") +
         tile(number("roofline_images_per_sec", "{:.1f}"),
              "images/sec at most, with each operand moved once") +
         tile(number("arithmetic_images_per_sec", "{:.1f}"),
              "images/sec at most, by arithmetic alone") +
         tile(number("largest_batch", "{:.0f}"),
              fmt::format("largest {} that fits{}",
                          of_evaluation ? "--eval_batch_size" : "--batch_size",
                          with_lms ? " without --lms" : "")) +
         tile(arena && limit ? bytes_text(*arena) + " of " + bytes_text(*limit) : "",
              "planned arena");
}

// Returns the result of --find_max_batch or --find_max_image_size.
std::string search_tiles(const Json& json) {
  const Json& search = at(json, {"search"});
  if (!search.is_object()) {
    return {};
  }
  const std::string flag = "--" + text_of(at(search, {"flag"}));
  const double largest = number_or(search, "largest", 0);
  const auto size = [&search](const char* key) {
    const auto bytes = number_at(search, {key});
    return bytes ? fmt::format("{:.1f} MiB", *bytes / one_mib) : std::string();
  };
  return tile(largest > 0 ? fmt::format("{:.0f}", largest) : "none", "largest " + flag) +
         tile(size("bytes"), is_true(search, "lms") ? "needed at least" : "needed") +
         tile(size("limit_bytes"), "limit of memory") +
         tile(size("further_bytes"),
              fmt::format("needed by {}={:.0f}", flag, largest + number_or(search, "step", 1)));
}

}  // namespace

std::string tiles_of(const Json& json) {
  const Json& summary = at(json, {"summary"});
  const auto number = [&](const char* key, const char* form, double unit = 1) {
    const auto value = number_at(summary, {key});
    return value ? fmt::format(fmt::runtime(form), unit * *value) : std::string();
  };
  const std::string speed = number("images_per_sec", "{:.2f}");
  const auto peak = number_at(json, {"memory", "arena_peak_bytes"});
  return "<div class=\"tiles\">\n" + simulation_tiles(json) + search_tiles(json) +
         tile(speed.empty() ? speed : speed + " ± " + number("uncertainty", "{:.2f}"),
              "images/sec") +
         tile(number("median_step_seconds", "{:.2f} ms", 1e3), "median step") +
         tile(number("p99_step_seconds", "{:.2f} ms", 1e3), "99 of 100 steps within") +
         tile(number("percent_of_roofline", "{:.1f} %"), "of the roofline") +
         evaluation_tiles(json) +
         tile(peak ? bytes_text(*peak) : "", "measured peak of the arena") +
         tile(disturbed_of(json), "steps disturbed") + "</div>\n";
}

}  // namespace cnn::page
