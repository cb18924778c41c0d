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
  // Whether a signal has come, before all agree on it. Any thread may ask.
  static bool signal_came();
  std::optional<int> signal() const;
  std::string reason() const;  // "SIGINT", or the line that was lost; only if requested

  // Each of several processes ends when all agree to: from now on only that counts.
  void follow_others();
  // Why this process wants to end, for others: a signal's number, lost_line, or 0 if it does not.
  static constexpr int lost_line = -1;
  int wish() const;
  // All have heard this wish of a rank, which is not 0.
  void agree(int wish, int rank);

  // The process ends by itself, by a status that tells why: signals that come from now on, also
  // when this is gone, change nothing. A launcher sends them to all when one process has ended.
  void disregard() const;

  // Waits, or until this process wants to end.
  void wait(std::chrono::seconds time) const;

 private:
  struct Agreed {
    int wish = 0, rank = 0;
  };

  const Console& console_;
  std::optional<Agreed> agreed_;  // with others
};

// Ends the process as that signal does by default, so that whoever waits for it sees the signal.
[[noreturn]] void end_by_signal(int number);

}  // namespace cnn::bench
