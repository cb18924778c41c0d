#pragma once

#include <optional>

#include "bench/flags/config.h"
#include "bench/flags/json.h"
#include "bench/machine/backend.h"
#include "bench/report/console.h"
#include "bench/report/output_file.h"
#include "bench/session/op_profile.h"

namespace cnn::bench {

class Team;

// --tfprof_file and what --html_report needs beyond the rest of the result.
class ProfileReport {
 public:
  // of_ranks: steps of several ranks are profiled for the first process's report, whatever this
  // one's flags say. Throws Error if the file of the table cannot be written.
  ProfileReport(const Config& config, bool of_ranks);

  // Whether the flags ask for a profile.
  static bool is_wanted(const Config& config);

  // Where the run adds its steps; null if no flag asks for a profile.
  MeasuredProfile* measured() { return wanted_ ? &measured_ : nullptr; }

  // Adds the section "profile" and writes the table: all kinds of operations, then all nodes; the
  // costliest kinds go to stderr too. ceilings: of the device, where they were measured. Does
  // nothing if no step was profiled. All processes call it.
  void finish(Team& team, const std::optional<Ceilings>& ceilings, Console& console,
              Json& result) const;

 private:
  bool wanted_, of_ranks_;
  std::optional<std::string> path_;
  std::optional<OutputFile> table_;
  MeasuredProfile measured_;
};

}  // namespace cnn::bench
