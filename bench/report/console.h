#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cnn::bench {

// Where lines go. stdout gets the lines of tf_cnn_benchmarks and nothing else; all that this
// program adds goes to stderr.
class Console {
 public:
  Console();  // finds out whether stderr is a terminal

  void print(std::string_view line);  // stdout, at once
  void print(const std::vector<std::string>& lines);
  void note(std::string_view line);  // stderr
  // A line on a terminal's stderr that the next one overwrites; nothing elsewhere.
  void progress(std::string_view line);

 private:
  void clear_progress();

  bool terminal_ = false;
  bool progress_shown_ = false;
};

}  // namespace cnn::bench
