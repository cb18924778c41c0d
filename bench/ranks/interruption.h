#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "bench/report/console.h"

namespace cnn::bench {

// Whether a run should end before its time: SIGINT, SIGTERM or SIGHUP came, or nobody can read its
// lines. While one of these lives, the first such signal only asks for the end, and one that comes
// later ends the process at once. Signals that were ignored before stay so, as nohup wants. There
// may be one at a time in a process.
class Interruption {
 public:
  explicit Interruption(const Console& console);  // must outlive this
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // A SIGCONT of that process counts as a request to end by SIGTERM, which the process sends some
  // time later: until then there is time to save.
  void heed_announcement(int process);

  bool requested() const;
  // Returns whether a signal has arrived, also before the processes agree on it. Thread-safe.
  static bool signal_came();
  std::optional<int> signal() const;
  std::string reason() const;  // "SIGINT", or the line that was lost; only if requested

  // From now on the process ends only when all processes have agreed to end.
  void follow_others();
  // Returns why this process wants to end: a signal's number, lost_line, or 0 if it does not.
  static constexpr int lost_line = -1;
  int stop_reason() const;
  // Records that all processes have learned this reason, which is not 0, of a rank.
  void agree(int stop_reason, int rank);

  // Ignores signals from now on, also after this object is gone: the process ends by itself, with a
  // status that tells why, and a launcher sends signals to all when one process has ended.
  void disregard() const;

  // Waits for that time, or until this process wants to end.
  void wait(std::chrono::seconds time) const;

 private:
  struct Agreed {
    int stop_reason = 0, rank = 0;
  };

  const Console& console_;
  std::optional<Agreed> agreed_;  // with others
};

// Ends the process as that signal does by default, so that whoever waits for it sees the signal.
[[noreturn]] void end_by_signal(int number);

}  // namespace cnn::bench
