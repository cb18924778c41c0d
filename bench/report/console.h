#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cnn::bench {

// Prints lines. stdout gets only the lines of tf_cnn_benchmarks; this program's additions go to
// stderr. A failed write never ends the process.
class Console {
 public:
  Console();  // checks whether stderr is a terminal

  // Declares this process one of several that print the same lines. From then on, only rank 0
  // prints them; other ranks print only lines passed to print_own() and note_own().
  void become_rank(int rank);
  void print_own(std::string_view line);  // stdout
  void note_own(std::string_view line);   // stderr, prefixed with the rank

  void print(std::string_view line);  // stdout, unbuffered
  void print(const std::vector<std::string>& lines);
  void note(std::string_view line);  // stderr; lost if that is closed or full
  // Shows a line on a terminal's stderr that the next line overwrites; prints nothing elsewhere.
  void progress(std::string_view line);
  bool shows_progress() const { return terminal_ && speaks(); }

  // Returns the error of the first lost line of stdout, which the program reports at its end;
  // nothing if all lines were written.
  const std::optional<std::string>& lost() const { return lost_; }

 private:
  void clear_progress();

  bool speaks() const { return rank_.value_or(0) == 0; }

  std::optional<int> rank_;  // among several processes
  bool terminal_ = false;
  bool progress_shown_ = false;
  std::optional<std::string> lost_;
};

// Call once, before any file is opened. Prevents a file from getting the descriptor of a closed
// standard stream, and makes a closed pipe or the file size limit an error of the write instead of
// killing the process.
void guard_standard_streams();

}  // namespace cnn::bench
