#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "bench/plan/device_memory.h"
#include "bench/plan/job.h"
#include "bench/plan/lms_plan_file.h"

namespace cnn::bench {

struct RankContext;

// The sizes that make a run larger or smaller. eval_batch: of evaluations beside or instead of
// training. max_fused_grad_add_bytes, bucket_bytes: of CompileRequest.
struct Sizes {
  std::int64_t batch = 0, eval_batch = 0, image_size = 0;
  std::size_t max_fused_grad_add_bytes = layers::any_size;
  std::optional<std::size_t> bucket_bytes = {};
};
// Returns the phase of the program that a job is about, where that is no evaluation.
Phase main_phase(const Job& job);
// As the job has them, and the plan of --lms_plan_file. Throws Error where that cannot be read.
Sizes sizes_of(const Job& job);
// With those that a plan brings.
Sizes with_plan(Sizes sizes, const PlanSizes& plan);
// With another batch, which an evaluation that has none of its own follows.
Sizes with_batch(const Job& job, std::int64_t batch);

// Compiles what the mode of the job needs, at these sizes. Throws Error for what the model or the
// backend cannot do.
Programs compile_programs(const Job& job, const RankContext& context, const Sizes& sizes);

// The same; but where plain norms are faster than fused ones and do not fit, since they store
// images that fused ones do not, all norms are fused. Rank 0 decides: the others go by the seconds
// of nodes that it knows.
Programs programs_that_fit(const Job& job, const RankContext& context, const Sizes& sizes);

// Whether runs of other sizes than the job's would fit: by planning alone, with the plans that
// those runs would have. References must outlive it.
class Fitting {
 public:
  // with_lms: by the plans of --lms.
  Fitting(const Job& job, const RankContext& context, bool with_lms);

  std::size_t limit() const { return limit_; }  // bytes of the device
  bool with_lms() const { return with_lms_; }
  // Returns the bytes of the device that a run takes without LMS. Nothing: it cannot be had at all.
  std::optional<std::size_t> need(const Sizes& sizes) const;
  // The same; with LMS, where that is more than the limit, the least that any plan takes.
  std::optional<std::size_t> least_bytes(const Sizes& sizes) const;
  // Whether it would run: also that the plan of its policy is within device and host.
  bool runs(const Sizes& sizes) const;

 private:
  const Job& job_;
  const RankContext& context_;
  bool with_lms_;
  std::size_t limit_ = 0;
};

// The largest --batch_size that runs; 0: not even one example does.
std::int64_t largest_batch(const Job& job, const RankContext& context, bool with_lms);
// The largest --image_size that runs, in steps of 16 pixels; 0: none was found.
std::int64_t largest_image(const Job& job, const RankContext& context, bool with_lms);
constexpr std::int64_t image_step = 16;

}  // namespace cnn::bench
