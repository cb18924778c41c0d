#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/observer.h"

namespace cnn::bench {

struct Job;
class Session;

// Writes the tables of --lms_stats and --lms_stats_average, with the names and columns of the
// examples of IBM's LMS for TensorFlow 2. Their allocator counted events; these tables count the
// plan, which is equal in every step: allocs are blocks of the arena, reclaimOnes swapped-out
// tensors; a plan never empties the device, so reclaimAlls is 0.
class LmsStats final : public Observer {
 public:
  // References must outlive the object. Creates the folder. Throws Error if a table is not
  // writable.
  LmsStats(const Job& job, const Session& session);

  void step_finished(const FinishedStep& step) override;
  void end(const RunEnd& end) override;

 private:
  struct Counts {
    std::size_t allocs = 0, reclaims = 0;
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
