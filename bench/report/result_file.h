#pragma once

#include <optional>
#include <string>

#include "bench/flags/json.h"
#include "bench/report/output_file.h"

namespace cnn::bench {

// The target of --result_json. A regular file always holds the newest complete result; a pipe or a
// device gets only the first published result.
class ResultFile {
 public:
  // Without a path nothing is written. Throws Error if the path is not writable.
  explicit ResultFile(const std::optional<std::string>& path);

  // Throws Error.
  void publish(const Json& result);

 private:
  std::optional<OutputFile> file_;
  bool published_ = false;
};

}  // namespace cnn::bench
