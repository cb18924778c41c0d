#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/plan/job.h"
#include "bench/report/observer.h"
#include "bench/report/output_file.h"
#include "bench/session/team.h"

namespace cnn::bench {

// Where --hash_file goes: text that grows by each hashed step, as bench/report/result_format.md
// describes it. cnn_compare --bits reads it.
class HashFile final : public Observer {
 public:
  // result: what is known of the run, for the head of the file. Writes the head. The team, which
  // must be started, must outlive it. Throws Error if the path cannot be written.
  HashFile(const Job& job, const Team& team, const Json& result);

  void step_starts(std::int64_t /*number*/) override { runs_ = true; }
  void step_finished(const FinishedStep& step) override;
  // Writes the step that failed, if its tensors were hashed: the step about which ranks disagree
  // matters most. Writes nothing if the run failed between two steps.
  void failed(const RunEnd& end, std::string_view what) override;

 private:
  void write(std::int64_t global_step);
  void append(const std::string& text) const;

  std::string path_;
  OutputFile file_;
  const Team& team_;
  bool runs_ = false;                     // a step that this observer has not heard the end of
  std::optional<std::int64_t> finished_;  // global step of the latest that it has
};

}  // namespace cnn::bench
