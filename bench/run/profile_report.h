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

// Writes --tfprof_file and the profile that --html_report needs.
class ProfileReport {
 public:
  // of_ranks: profiles steps of several ranks for the first process's report, regardless of this
  // process's flags. Throws Error if the table's file is not writable.
  ProfileReport(const Config& config, bool of_ranks);

  // Returns whether the flags request a profile.
  static bool is_wanted(const Config& config);

  // Returns the profile that the run fills; null if no flag requests one.
  MeasuredProfile* measured() { return wanted_ ? &measured_ : nullptr; }

  // Adds the section "profile" and writes the table: all kinds of operations, then all nodes;
  // prints the costliest kinds to stderr. ceilings: of the device, if measured. Does nothing if no
  // step was profiled. All processes call it.
  void finish(Team& team, const std::optional<Ceilings>& ceilings, Console& console,
              Json& result) const;

 private:
  bool wanted_, of_ranks_;
  std::optional<std::string> path_;
  std::optional<OutputFile> table_;
  MeasuredProfile measured_;
};

}  // namespace cnn::bench
