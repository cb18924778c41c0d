#pragma once

#include <optional>
#include <string>

#include "bench/flags/json.h"
#include "bench/report/output_file.h"

namespace cnn::bench {

// Where --result_json goes. A regular file always holds the newest result, whole; a pipe or a
// device gets the first one that is published and no other.
class ResultFile {
 public:
  // Without a path nothing is written. Throws Error if the path cannot be written.
  explicit ResultFile(const std::optional<std::string>& path);

  // Throws Error.
  void publish(const Json& result);

 private:
  std::optional<OutputFile> file_;
  bool published_ = false;
};

}  // namespace cnn::bench
