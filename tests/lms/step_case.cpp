#include "tests/lms/step_case.h"

#include <utility>

#include "tests/lms/mix.h"
#include "tests/support/test_step.h"

namespace cnn::tests {

Value StepCase::images(std::int64_t channels) const {
  return graph->state("images", image(channels), {}, false);
}

Value StepCase::weights(std::int64_t channels) const {
  const std::string name = "w" + std::to_string(graph->tensors().size());
  return graph->parameter(name, {.shape = {2, channels, 1, 8}}, {});
}

std::vector<Value> StepCase::make_all(const std::string& op, const std::vector<Value>& in,
                                      std::vector<TensorDesc> out, bool in_place) const {
  return graph->append(std::make_shared<const Mix>(op, std::move(out), in_place), in);
}

Value StepCase::make(const std::string& op, const std::vector<Value>& in, bool in_place) const {
  return make_all(op, in, {image(in.front().desc().shape[1])}, in_place).front();
}

Value StepCase::make_image(const std::string& op, const std::vector<Value>& in,
                           std::int64_t channels) const {
  return make_all(op, in, {image(channels)}).front();
}

void StepCase::settle(Value first, std::size_t workspace) {
  specs = describe(*graph, mix_kernels(workspace));
  schedule = make_schedule(*graph);
  costs.seconds.assign(graph->nodes().size(), 1);
  for (std::uint32_t s = 0; s < schedule.steps.size(); ++s) {
    const auto* compute = std::get_if<Compute>(&schedule.steps[s].action);
    if (compute != nullptr && compute->node == graph->producer(first.id)) {
      backward = StepId{s};
    }
  }
}

lms::Request StepCase::request() const {
  return {.graph = *graph,
          .specs = specs,
          .schedule = schedule,
          .backward = backward,
          .costs = costs,
          .budget = budget,
          .variable_bytes = variable_bytes,
          .options = options};
}

PeakMemory StepCase::peak(const Schedule& schedule) const {
  std::vector<std::size_t> workspaces;
  for (const KernelSpec& spec : specs) {
    workspaces.push_back(spec.workspace);
  }
  return peak_memory(*graph, schedule, workspaces);
}

StepPlan StepCase::planned(const Schedule& schedule) const {
  StepPlan plan = make_plan(graph, specs, schedule);
  verify(plan, schedule);
  return plan;
}

std::vector<float> StepCase::outcome(const Schedule& schedule) const {
  TestStep step(planned(schedule), mix_kernels(0));
  step.run();
  step.run();
  return step.outcome();
}

std::vector<std::string> texts(const Graph& graph, const Schedule& schedule) {
  std::vector<std::string> result;
  for (const Step& step : schedule.steps) {
    std::string text = to_string(graph, step.action);
    for (const StepId wait : step.after) {
      text += " <" + std::to_string(index_of(wait));
    }
    result.push_back(text);
  }
  return result;
}

std::vector<std::string> lines(const lms::Plan& plan, int level) {
  std::vector<std::string> result;
  for (const lms::Note& note : plan.notes) {
    if (note.level <= level) {
      result.push_back(note.text);
    }
  }
  return result;
}

}  // namespace cnn::tests
