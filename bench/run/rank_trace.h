#pragma once

#include <optional>
#include <string>

#include "bench/report/console.h"
#include "bench/report/observer.h"
#include "bench/report/trace_file.h"

namespace cnn::bench {

class Team;

// Implements --trace_file for several ranks: one file with the same step of all ranks. All
// processes have one, and the first writes.
class RankTrace final : public Observer {
 public:
  // path: empty if another process writes. References must outlive the object. Throws Error if the
  // path is not writable.
  RankTrace(Console& console, const std::string& path, Team& team);

  bool wants_timeline(std::int64_t step) const override { return step == traced_step; }
  void step_finished(const FinishedStep& step) override;

 private:
  Console& console_;
  std::string path_;
  Team& team_;
  std::optional<TraceFile> file_;
};

}  // namespace cnn::bench
