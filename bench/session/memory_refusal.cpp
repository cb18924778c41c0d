#include "bench/session/memory_refusal.h"

#include <algorithm>
#include <fmt/format.h>

#include "bench/flags/number_text.h"
#include "bench/plan/fitting.h"
#include "bench/plan/job.h"
#include "bench/ranks/rank_context.h"
#include "bench/session/out_of_memory.h"

namespace cnn::bench {
namespace {

bool evaluation_is_largest(const Programs& programs) {
  return programs.evaluation &&
         (!programs.main || programs.evaluation->device_bytes() > programs.main->device_bytes());
}

// Returns whether the largest program is an evaluation with a batch of its own.
bool is_of_eval_batch(const Job& job, const Programs& programs) {
  return job.config->eval.batch > 0 && evaluation_is_largest(programs);
}

}  // namespace

std::string batch_flag(const Job& job, const Programs& programs) {
  return evaluation_is_largest(programs)
             ? fmt::format("{}={}", job.eval_batch_flag(), job.eval_batch.per_device)
             : fmt::format("--batch_size={}", job.batch.per_device);
}

std::string memory_refusal(const Job& job, const Programs& programs, const DeviceMemory& memory,
                           const RankContext& context) {
  if (fits(memory, context)) {
    return {};
  }
  const bool is_evaluation = is_of_eval_batch(job, programs);
  const std::string advice = is_evaluation ? largest_eval_batch_text(job, context)
                                           : largest_batch_text(job, context, /*with_lms=*/false);
  const std::size_t free = context.memory.device;
  const Compiled& largest =
      (evaluation_is_largest(programs) ? programs.evaluation : programs.main).value();
  const std::string what = fmt::format(
      "{}\n{} with {}",
      tensorflow_oom_line(largest.plan, free - std::min(free, memory.variables + memory.staged),
                          context.backend.name != "cpu"),
      job.model->name, batch_flag(job, programs));
  if (memory.total() <= free) {
    return fmt::format("{} swaps {} to the host, but {} are free there: {}", what,
                       bytes_text(memory.host), bytes_text(host_bytes_left(memory, context)),
                       advice);
  }
  const std::string device = context.backend.device ? std::string(context.backend.device->name())
                                                    : context.backend.described->machine;
  return fmt::format("{} needs {}, but {} are free on {} ({}): {}{}", what,
                     bytes_text(memory.total()), bytes_text(free), device, context.memory.text,
                     advice, job.trains() && !is_evaluation ? "; --lms trains larger ones" : "");
}

}  // namespace cnn::bench
