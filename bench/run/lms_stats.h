#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/observer.h"
#include "lms/policy.h"

namespace cnn::bench {

struct Job;
class Session;

// The tables of --lms_stats and --lms_stats_average, with the names and columns that the examples
// of IBM's LMS for TensorFlow 2 gave them. Where its allocator counted, the plan is counted, which
// is the same in every step: allocs are blocks of the arena. A policy that replays an allocator
// counts as reclaimOnes the needs that one tensor met, as reclaimAlls those for which none was
// large enough; for other policies, which never empty the device, reclaimOnes are tensors that
// leave.
class LmsStats final : public Observer {
 public:
  // References must outlive the object. Creates the folder. Throws Error if a table is not
  // writable.
  LmsStats(const Job& job, const Session& session);

  void step_finished(const FinishedStep& step) override;
  void end(const RunEnd& end) override;

 private:
  struct Counts {
    std::size_t allocs = 0;
    lms::Reclaims reclaims;
    double gib = 0;
  };
  Counts counts() const;
  std::string average() const;

  const Job& job_;
  const Session& session_;
  std::optional<std::string> steps_path_, average_path_;
  std::vector<double> seconds_;  // of the steps in the average
};

}  // namespace cnn::bench
