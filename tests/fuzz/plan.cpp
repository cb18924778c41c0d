// libFuzzer target that reads plans of --lms_plan_file for a small step.
#include "bench/plan/lms_plan_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/swapping_step.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cnn::bench;
  static const cnn::StepPlan step = cnn::tests::swapping_plan();
  static const PlanOrigin origin{.facts = {{"model", "resnet20"}}, .graph = 1};
  const std::string text = cnn::fuzz::text_of({data, size});
  cnn::fuzz::survive([&] {
    const SavedPlan plan = read_plan(text, origin, *step.graph);
    static_cast<void>(plan_json(plan, origin, *step.graph).dump());
  });
  cnn::fuzz::survive([&] { read_plan_sizes(text); });
  return 0;
}
