#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/observer.h"
#include "lms/policy.h"

namespace cnn::bench {

struct Job;
class Console;
class Session;

// Writes the tables of --lms_stats and --lms_stats_average, with the names and columns of the
// examples of IBM's LMS for TensorFlow 2. The original counts calls of its allocator; here the
// counts come from the plan and are the same in every step. allocs are the blocks of the arena. For
// a policy that replays an allocator, reclaimOnes are the shortages that evicting one tensor
// resolved, reclaimAlls those for which no single tensor was large enough; for other policies
// reclaimOnes are the tensors that leave the device.
class LmsStats final : public Observer {
 public:
  // References must outlive the object. Creates the folder. Throws Error if a table is not
  // writable.
  LmsStats(const Job& job, const Session& session, Console& console);

  void step_finished(const FinishedStep& step) override;
  void end(const RunEnd& end) override;

 private:
  struct Counts {
    std::size_t allocs = 0;
    lms::Reclaims reclaims;
    double gib = 0;
  };
  Counts counts() const;
  std::string average() const;  // needs a step

  const Job& job_;
  const Session& session_;
  Console& console_;
  std::optional<std::string> steps_path_, average_path_;
  std::vector<double> seconds_;  // of the steps in the average
};

}  // namespace cnn::bench
