#include "bench/page/heading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/page/json_text.h"
#include "bench/page/units.h"

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

// Returns the name of the model; a search builds none, but has the flag.
std::string model_of(const Json& json) {
  const Json& built = at(json, {"model", "name"});
  return text_of(built.is_null() ? at(json, {"config", "model"}) : built);
}

// Returns the description of a search, which has no section for its mode, model and plan.
std::vector<std::string> search_heading_of(const Json& json) {
  const Json& config = at(json, {"config"});
  const std::string mode = is_true(config, "eval")           ? "evaluation"
                           : is_true(config, "forward_only") ? "forward only"
                                                             : "training";
  std::vector<std::string> parts{
      fmt::format("search for {}{}", mode, is_true(at(json, {"search"}), "lms") ? ", --lms" : "")};
  if (const double batch = number_or(config, "batch_size", 0);
      batch > 0 && at(json, {"search", "flag"}) == "image_size") {
    parts.push_back(fmt::format("batch {:.0f} per device", batch));
  }
  parts.push_back("precision " + text_of(at(config, {"precision"})));
  parts.push_back("data set " + text_of(at(config, {"data_name"})));
  return parts;
}

// Returns "15533.7 MiB (16288271492 bytes)": a size and its limit often differ by little.
std::string exact_size(double bytes) {
  return fmt::format("{:.1f} MiB ({:.0f} bytes)", bytes / one_mib, bytes);
}

// Returns why the next size is too large.
std::string too_large_because(const Json& search, double limit) {
  const auto further = number_at(search, {"further_bytes"});
  if (!further) {
    return "cannot be had on this backend";
  }
  return *further > limit ? "takes " + exact_size(*further)
                          : "has no plan that device and host both hold";
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
  if (!evaluations.is_array()) {
    return;
  }
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
  const std::string described = simulated_machine_of(json);
  const Json& gpu = at(json, {"machine", "gpu", "name"});
  const std::string machine =
      !described.empty() ? described + ", simulated"
                         : text_of(gpu.is_null() ? at(json, {"machine", "cpu", "name"}) : gpu);
  if (const std::string flag = text_of(at(json, {"search", "flag"})); !flag.empty()) {
    return fmt::format("Largest --{} of {} on {}", flag, model_of(json), machine);
  }
  return fmt::format("{} on {}{}", model_of(json), machine,
                     described.empty() ? "" : ": a prediction, not a measurement");
}

std::string heading_of(const Json& json) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::string& before, const std::string& text) {
    if (!text.empty()) {
      parts.push_back(before + text);
    }
  };
  if (at(json, {"search"}).is_object()) {
    parts = search_heading_of(json);
  }
  add("", text_of(at(json, {"mode"})));
  add("", batch_of(json));
  add("precision ", text_of(at(json, {"plan", "precision"})));
  add("data set ", text_of(at(json, {"model", "data_set"})));
  add("image size ", text_of(at(json, {"model", "image_size"})));
  add("", date_of(json));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string search_answer(const Json& json) {
  const Json& search = at(json, {"search"});
  if (!search.is_object()) {
    return {};
  }
  const std::string flag = text_of(at(search, {"flag"}));
  const double largest = number_or(search, "largest", 0),
               limit = number_or(search, "limit_bytes", 0);
  const auto bytes = number_at(search, {"bytes"});
  if (largest == 0 || !bytes) {
    return fmt::format("No --{} fits in the limit of {}", flag, exact_size(limit));
  }
  return fmt::format("--{}={:.0f} takes {}{}; the limit is {}; {:.0f} {}", flag, largest,
                     is_true(search, "lms") ? "at least " : "", exact_size(*bytes),
                     exact_size(limit), largest + number_or(search, "step", 1),
                     too_large_because(search, limit));
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
