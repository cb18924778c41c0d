#include "bench/page/heading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/page/json_text.h"

namespace cnn::page {
namespace {

// Returns "2026-11-23 12:22:31 UTC" for "2026-11-23T12:22:31.396989Z".
std::string date_of(const Json& json) {
  std::string text = text_of(at(json, {"started"}));
  if (const auto middle = text.find('T'); middle != std::string::npos) {
    text[middle] = ' ';
    text = text.substr(0, text.find_first_of(".Z")) + " UTC";
  }
  return text;
}

// Returns the global and the per-device batch; older files imply the first by the speed of a step.
std::string batch_of(const Json& json) {
  const auto global = number_at(json, {"batch", "global"});
  const auto own = number_at(json, {"batch", "per_device"});
  if (global && own) {
    return fmt::format("batch {:.0f}{}", *global,
                       *global == *own ? "" : fmt::format(" ({:.0f} per device)", *own));
  }
  const Json& steps = at(json, {"steps"});
  if (!steps.is_array() || steps.empty()) {
    return {};
  }
  return fmt::format("batch {:.0f}", number_or(steps.front(), "images_per_sec", 0) *
                                         number_or(steps.front(), "seconds", 0));
}

// Returns "Interrupted (SIGTERM) after 12 timed steps".
std::string interruption_of(const Json& json) {
  const std::size_t steps = at(json, {"steps"}).size();
  return fmt::format("Interrupted ({}){}", text_of(at(json, {"interrupted_by"})),
                     steps == 0
                         ? std::string()
                         : fmt::format(" after {} timed step{}", steps, steps == 1 ? "" : "s"));
}

// Returns the end of a sentence that names the tensor; empty if that is unknown.
std::string first_non_finite(const Json& tensor) {
  return tensor.is_null() ? std::string()
                          : "; the first tensor that was not finite: " + text_of(tensor);
}

// Returns since which step the loss is not finite, and the first such tensor if it is known.
std::string divergence_of(const Json& diverged) {
  const std::string step = text_of(at(diverged, {"step"}));
  return fmt::format("The training diverged: the loss is {} since {} (global step {}){}",
                     text_of(at(diverged, {"loss"})), step.empty() ? "the warm-up" : "step " + step,
                     text_of(at(diverged, {"global_step"})),
                     first_non_finite(at(diverged, {"tensor"})));
}

// Adds a sentence for each evaluation whose loss was not finite, which the result file has as null.
void add_evaluation_problems(const Json& json, std::vector<std::string>& problems) {
  const Json& evaluations = at(json, {"evaluation"});
  for (const Json& evaluation : evaluations) {
    if (!number_at(evaluation, {"base_loss"})) {
      problems.push_back(
          fmt::format("The loss of the evaluation at global step {} was not finite{}",
                      text_of(at(evaluation, {"global_step"})),
                      first_non_finite(at(evaluation, {"non_finite"}))));
    }
  }
  const bool only_evaluates =
      at(json, {"mode"}) == "evaluation" && simulated_machine_of(json).empty();
  if (only_evaluates && evaluations.empty() && problems.empty()) {
    problems.emplace_back("Nothing was evaluated");
  }
}

}  // namespace

std::string simulated_machine_of(const Json& json) {
  const std::string described = text_of(at(json, {"simulation", "machine"}));
  return described.empty() ? text_of(at(json, {"config", "simulate"})) : described;
}

std::string title_of(const Json& json) {
  const std::string model = text_of(at(json, {"model", "name"}));
  if (const std::string machine = simulated_machine_of(json); !machine.empty()) {
    return fmt::format("{} on {}, simulated: a prediction, not a measurement", model, machine);
  }
  const Json& gpu = at(json, {"machine", "gpu", "name"});
  return fmt::format("{} on {}", model,
                     text_of(gpu.is_null() ? at(json, {"machine", "cpu", "name"}) : gpu));
}

std::string heading_of(const Json& json) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::string& before, const std::string& text) {
    if (!text.empty()) {
      parts.push_back(before + text);
    }
  };
  add("", text_of(at(json, {"mode"})));
  add("", batch_of(json));
  add("precision ", text_of(at(json, {"plan", "precision"})));
  add("data set ", text_of(at(json, {"model", "data_set"})));
  add("image size ", text_of(at(json, {"model", "image_size"})));
  add("", date_of(json));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> problems_of(const Json& json) {
  std::vector<std::string> problems;
  if (json.contains("error")) {
    problems.push_back(text_of(json.at("error")));
  }
  if (json.contains("interrupted_by")) {
    problems.push_back(interruption_of(json));
  }
  if (json.contains("diverged")) {
    problems.push_back(divergence_of(json.at("diverged")));
  }
  add_evaluation_problems(json, problems);
  return problems;
}

}  // namespace cnn::page
