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

  bool requested() const { return signal() || console_.lost(); }
  std::optional<int> signal() const;
  std::string reason() const;  // "SIGINT", or the line that was lost; only if requested

  // Waits, or until the end is requested.
  void wait(std::chrono::seconds time) const;

 private:
  const Console& console_;
};

// Ends the process as that signal does by default, so that whoever waits for it sees the signal.
[[noreturn]] void end_by_signal(int number);

}  // namespace cnn::bench
