#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lms/options.h"
#include "lms/outline.h"
#include "lms/unroll.h"

namespace cnn::lms {

// Where the copy of a stay stands: in front of this unrolled step its bytes begin to be taken, or,
// for a departure, cease to be kept because that step, or the return in front of it, waits.
struct Departure {
  std::uint32_t stay = 0;
  std::optional<std::uint32_t> freed_for_step, freed_for_return;  // at most one: a step, a return
};
struct Return {
  std::uint32_t stay = 0;
  std::uint32_t position = 0;
};

struct Evaluation {
  std::size_t peak = 0;  // bytes, of the fullest step
  double excess = 0;     // bytes beyond the budget, summed over the steps
  double seconds = 0;    // of the step, with all waits
  bool fits = false;
};

// Memory over the unrolled steps, and time. Departures and returns are one queue each: a departure
// frees its bytes only when a step or a return needs them, which then waits for it; a return begins
// as early as the memory between there and its use allows. That is the best order of copies for
// tensors of one size; see 8.6 of the tests' fixtures.
class Evaluator {
 public:
  Evaluator(const Outline& outline, std::size_t device_bytes, SyncMode sync = SyncMode::none);

  const Evaluation& evaluate(const Unrolled& unrolled);

  // The same for what fits and whose nodes take no more than so many seconds; else `seconds` are
  // those of the nodes and nothing but the result may be asked for.
  const Evaluation& estimate(const Unrolled& unrolled, double seconds);

  // Bytes are taken no longer than the times of the latest evaluation let them: departures are
  // freed as soon as they have ended, returns begin so late that each ends `slack` seconds before
  // its use. Lets placement find room; the step takes as long.
  void tighten(const Unrolled& unrolled, double slack);

  // Returns the copies out of the latest evaluation.
  const std::vector<Departure>& departures() const { return departures_; }
  const std::vector<Return>& returns() const { return returns_; }
  const std::vector<std::size_t>& bytes() const { return bytes_; }  // by unrolled step

 private:
  void weigh(const Unrolled& unrolled);
  void run(const Unrolled& unrolled);
  void add_stays(const Unrolled& unrolled);
  void find_copies(const Unrolled& unrolled);
  void bring_forward(const Unrolled& unrolled);
  void measure();
  void run_lanes(const Unrolled& unrolled);
  void free_for(std::uint32_t step, std::size_t room, std::optional<std::uint32_t> for_return);
  void begin_return(const Unrolled& unrolled, std::uint32_t r, std::size_t room);
  double free_until(std::size_t room) const;
  void free_early(const Unrolled& unrolled);
  void await_departures(const Unrolled& unrolled);
  double seconds_of(std::uint32_t stay, const Unrolled& unrolled, double rate) const;

  const Outline& outline_;
  std::size_t device_bytes_;
  SyncMode sync_;
  Evaluation result_;
  std::vector<std::size_t> bytes_;
  std::vector<Departure> departures_;
  std::vector<Return> returns_;
  // Scratch memory of run_lanes.
  std::vector<double> ends_, starts_;       // by unrolled step
  std::vector<double> departed_;            // by departure: when its copy ends
  std::vector<double> begun_;               // by return: when its copy starts
  std::vector<double> ready_;               // by unrolled step: when its returns are there
  std::vector<std::size_t> pending_bytes_;  // by departure
  std::vector<std::int32_t> departure_of_;  // by root
  std::size_t freed_ = 0;                   // departures whose bytes are free
  std::size_t started_ = 0;                 // departures that stand behind a step that has run
  std::size_t pending_ = 0;                 // bytes of those in between
  double waits_until_ = 0;
  double in_ = 0;  // when the lane of returns is free
};

}  // namespace cnn::lms
