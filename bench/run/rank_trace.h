#pragma once

#include <optional>
#include <string>

#include "bench/report/console.h"
#include "bench/report/observer.h"
#include "bench/report/trace_file.h"

namespace cnn::bench {

class Team;

// --trace_file of several ranks: the same step of all of them in one file. All processes have one,
// and the first writes.
class RankTrace final : public Observer {
 public:
  // path: empty where another process writes. References must outlive it. Throws Error if the path
  // cannot be written.
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
