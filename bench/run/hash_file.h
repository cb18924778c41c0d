#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/plan/job.h"
#include "bench/report/observer.h"
#include "bench/report/output_file.h"
#include "bench/session/team.h"

namespace cnn::bench {

// The target of --hash_file: text that grows with each hashed step, in the format of
// bench/report/result_format.md. cnn_compare --bits reads it.
class HashFile final : public Observer {
 public:
  // Writes the head of the file. result: source of the run's description. The team, which must be
  // started, must outlive the object. Throws Error if the path is not writable.
  HashFile(const Job& job, const Team& team, const Json& result);

  void step_starts(std::int64_t /*number*/) override { runs_ = true; }
  void step_finished(const FinishedStep& step) override;
  // Writes the failed step if its tensors were hashed: a step on which ranks disagree matters most.
  // Writes nothing if the run failed between steps.
  void failed(const RunEnd& end, std::string_view what) override;

 private:
  void write(std::int64_t global_step);
  void append(const std::string& text) const;

  std::string path_;
  OutputFile file_;
  const Team& team_;
  bool runs_ = false;                     // a step has started and not finished
  std::optional<std::int64_t> finished_;  // global step of the latest finished step
};

}  // namespace cnn::bench
