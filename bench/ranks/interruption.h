#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "bench/report/console.h"

namespace cnn::bench {

// Tells whether a run should end early: SIGINT, SIGTERM or SIGHUP arrived, or stdout failed. While
// an object lives, the first such signal only requests the end, and a later one ends the process at
// once. Signals ignored before stay ignored, as nohup requires. A process may have one object at a
// time.
class Interruption {
 public:
  explicit Interruption(const Console& console);  // must outlive this
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Treats a SIGCONT from that process as a request to end by SIGTERM, which the process sends some
  // time later: until then there is time to save.
  void heed_announcement(int process);

  bool requested() const;
  // Returns whether a signal has arrived in this process, before all processes agree to end. Any
  // thread may call it; false while no object lives.
  static bool signal_came();
  std::optional<int> signal() const;
  std::string reason() const;  // "SIGINT", or the error of stdout; only if requested

  // From now on, the process ends only when all processes have agreed to.
  void follow_others();
  // Returns why this process wants to end: a signal's number, lost_line, or 0 for no reason.
  static constexpr int lost_line = -1;
  int stop_reason() const;
  // Records a rank's reason, not 0, that all processes have received.
  void agree(int stop_reason, int rank);

  // Ignores signals from now on, even after this object is destroyed: the process ends by itself
  // with a meaningful status, while a launcher sends signals to all when one process has ended.
  void disregard() const;

  // Blocks for that time, or until this process wants to end.
  void wait(std::chrono::seconds time) const;

 private:
  struct Agreed {
    int stop_reason = 0, rank = 0;
  };

  const Console& console_;
  std::optional<Agreed> agreed_;  // among several processes
};

// Ends the process by the default action of that signal, so that its parent sees the signal.
[[noreturn]] void end_by_signal(int number);

}  // namespace cnn::bench
