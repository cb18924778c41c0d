#include "bench/report/result_file.h"

#include "bench/report/result_json.h"

namespace cnn::bench {

ResultFile::ResultFile(const std::optional<std::string>& path) {
  if (path) {
    file_.emplace("--result_json", *path);
  }
}

void ResultFile::publish(const Json& result) {
  if (file_ && (!published_ || file_->replaceable())) {
    file_->write(result_text(result));
    published_ = true;
  }
}

}  // namespace cnn::bench
