#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "bench/plan/device_memory.h"
#include "bench/plan/job.h"
#include "bench/plan/lms_plan_file.h"

namespace cnn::bench {

struct RankContext;

// The sizes that determine a run's memory. eval_batch: of evaluations beside or instead of
// training. max_fused_grad_add_bytes, bucket_bytes, and all slices: of CompileRequest.
// host_variables: the largest parameters lie on the host.
struct Sizes {
  std::int64_t batch = 0, eval_batch = 0, image_size = 0;
  std::size_t max_fused_grad_add_bytes = layers::any_size;
  std::optional<std::size_t> bucket_bytes = {};
  std::int64_t slices = 1, row_slices = 1, dense_slices = 1;
  bool host_variables = false;
};
// Returns whether parameters of this job can lie on the host: a job that trains in f32 on one
// device with a memory of its own.
bool may_host_variables(const Job& job, const RankContext& context);
// Returns the phase of a job's main program, if it is not an evaluation.
Phase main_phase(const Job& job);
// Returns the sizes of the job and of the plan of --lms_plan_file. Throws Error if that is
// unreadable.
Sizes sizes_of(const Job& job);
// Returns the sizes with those of a plan.
Sizes with_plan(Sizes sizes, const PlanSizes& plan);
// Returns the sizes with another batch, which an evaluation without its own batch adopts.
Sizes with_batch(const Job& job, std::int64_t batch);

// Compiles the programs of the job's mode at these sizes. Throws Error if the model or the backend
// cannot do the request, as variables on the host of a job that cannot have them.
Programs compile_programs(const Job& job, const RankContext& context, const Sizes& sizes);

// Compiles the programs, but fuses all norms if faster plain norms do not fit, since those store
// images that fused norms avoid. Rank 0 decides: other ranks use its node times.
Programs programs_that_fit(const Job& job, const RankContext& context, const Sizes& sizes);

// Tells whether runs of other sizes than the job's would fit, by planning alone, with the plans
// that those runs would have. References must outlive it.
class Fitting {
 public:
  // with_lms: uses the plans of --lms.
  Fitting(const Job& job, const RankContext& context, bool with_lms);

  std::size_t limit() const { return limit_; }  // bytes of the device
  // Returns the origin of the limit for messages: the device's memory or flags that reduced it.
  const std::string& limit_source() const { return limit_source_; }
  bool with_lms() const { return with_lms_; }
  // Returns the device bytes of a run without LMS. Nothing: the run is impossible.
  std::optional<std::size_t> need(const Sizes& sizes) const;
  // Returns need(); with LMS, if that exceeds the limit, the smallest bytes of any plan.
  std::optional<std::size_t> min_bytes(const Sizes& sizes) const;
  // Returns whether the run would work: with LMS, its policy's plan must also fit in device and
  // host.
  bool runs(const Sizes& sizes) const;

 private:
  const Job& job_;
  const RankContext& context_;
  bool with_lms_;
  std::size_t limit_ = 0;
  std::string limit_source_;
};

// Returns the largest --batch_size that runs; 0: not even one example does.
std::int64_t largest_batch(const Job& job, const RankContext& context, bool with_lms);
// Returns the advice of a refusal: the largest --batch_size that runs, else the flags to lower.
std::string largest_batch_text(const Job& job, const RankContext& context, bool with_lms);
// Returns the advice of a refusal without --lms whose cause is the batch of the evaluation: the
// largest --eval_batch_size that runs with the --batch_size of the job, else the flags to lower.
std::string largest_eval_batch_text(const Job& job, const RankContext& context);
// Returns the largest --image_size that runs, in steps of 16 pixels; 0: none was found.
std::int64_t largest_image(const Job& job, const RankContext& context, bool with_lms);
constexpr std::int64_t image_step = 16;

}  // namespace cnn::bench
