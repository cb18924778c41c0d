#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cnn::bench {

// Where lines go. stdout gets the lines of tf_cnn_benchmarks and nothing else; all that this
// program adds goes to stderr. A line that cannot be written never ends the process.
class Console {
 public:
  Console();  // finds out whether stderr is a terminal

  // From now on this is one of several processes that say the same. Only the first, of rank 0, says
  // it; of the others appears what follows as their own.
  void become_rank(int rank) { rank_ = rank; }
  void print_own(std::string_view line);  // stdout
  void note_own(std::string_view line);   // stderr, with the rank in front

  void print(std::string_view line);  // stdout, at once
  void print(const std::vector<std::string>& lines);
  void note(std::string_view line);  // stderr; lost where that is closed or full
  // A line on a terminal's stderr that the next one overwrites; nothing elsewhere.
  void progress(std::string_view line);

  // Returns what became of the first line of stdout that was lost, for whoever ends the program to
  // say; nothing if all arrived.
  const std::optional<std::string>& lost() const { return lost_; }

 private:
  void clear_progress();

  bool speaks() const { return rank_.value_or(0) == 0; }

  std::optional<int> rank_;  // of several processes
  bool terminal_ = false;
  bool progress_shown_ = false;
  std::optional<std::string> lost_;
};

// Once, before anything is opened: no file gets the number of a standard stream that is closed, and
// a pipe that nobody reads, or a file that may not grow, is an error of the write, not the death of
// the process.
void guard_standard_streams();

}  // namespace cnn::bench
