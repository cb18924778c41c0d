#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace cnn::bench {

// Turns of programs on one machine: of all that name one file, one works and the others wait.
// Whatever disturbs the machine for longer than a turn then disturbs all of them alike, which makes
// their speeds comparable where runs one after the other drift apart.
//
// The file is a turnstile of two locks, bytes 0 ("works") and 1 ("is next"): whoever wants to work
// takes 1, then 0, then lets 1 go; so the one that passes its turn comes behind the one that waits.
// The system lets go of the locks of a program that ends, however it does: nobody waits for the
// dead, and a program without others never waits.
class Turns {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds usual_turn{500};

  // Makes the file if it is missing. Throws Error. asked_to_end: polled while this one waits; once
  // it is true the turns are over for this one, and it waits no more. Null: it waits until its
  // turn.
  explicit Turns(const std::string& path, Clock::duration turn = usual_turn,
                 std::function<bool()> asked_to_end = nullptr);
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Waits for the first turn. Throws Error if the file system has no locks.
  void begin();
  // Lets another one work, if any waits; returns when it is this one's turn again.
  void pass();
  // The turn has lasted as long as turns do: pass it on when a step ends.
  bool is_over() const { return file_ != nullptr && Clock::now() - start_ >= turn_; }

  std::int64_t passed() const { return passed_; }
  double seconds_waited() const { return std::chrono::duration<double>(waited_).count(); }

 private:
  class File;
  struct Wait;

  void enter();
  void wait_on_thread();

  Clock::duration turn_;
  std::function<bool()> asked_to_end_;
  std::shared_ptr<File> file_;  // null: it was asked to end while it waited
  Clock::time_point start_;
  Clock::duration waited_{};
  std::int64_t passed_ = 0;
};

}  // namespace cnn::bench
