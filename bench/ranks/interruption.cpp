#include "bench/ranks/interruption.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>
#include <utility>

namespace cnn::bench {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 3> signals{
    {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}}};
// timeout(1) signals the process and then its whole group: both count as one request.
constexpr std::int64_t same_request = 50'000'000;  // nanoseconds
constexpr std::chrono::milliseconds moment{50};

// The state of the signal handler, which receives only a number.
struct SignalState {
  std::atomic<int> signal{0};
  std::atomic<std::int64_t> when{0};  // time of the first signal, in nanoseconds
  std::atomic<int> announcer{0};      // the process whose SIGCONT announces the end; 0: none
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);
};

SignalState& caught() {
  static SignalState state;
  return state;
}

std::int64_t nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

void on_signal(int number) {
  SignalState& state = caught();
  std::int64_t first = 0;
  const std::int64_t now = nanoseconds();
  if (state.when.compare_exchange_strong(first, now)) {
    state.signal = number;
  } else if (now - first > same_request) {
    std::signal(number, SIG_DFL);
    std::raise(number);  // takes effect when this returns
  }
}

// The SIGTERM that follows still counts as the first request.
void on_continue(int /*number*/, siginfo_t* info, void* /*context*/) {
  SignalState& state = caught();
  if (info->si_pid != 0 && info->si_pid == state.announcer) {
    int none = 0;
    state.signal.compare_exchange_strong(none, SIGTERM);
  }
}

}  // namespace

Interruption::Interruption(const Console& console) : console_(console) {
  caught().signal = 0;
  caught().when = 0;
  for (const auto& [number, name] : signals) {
    if (std::signal(number, on_signal) == SIG_IGN) {
      std::signal(number, SIG_IGN);
    }
  }
}

Interruption::~Interruption() {
  caught().signal = 0;
  if (caught().announcer.exchange(0) != 0) {
    std::signal(SIGCONT, SIG_DFL);
  }
  for (const auto& [number, name] : signals) {
    if (std::signal(number, SIG_DFL) == SIG_IGN) {
      std::signal(number, SIG_IGN);
    }
  }
}

// NOLINTNEXTLINE(readability-convert-member-functions-to-static): its destructor ends it
void Interruption::heed_announcement(int process) {
  caught().announcer = process;
  struct sigaction action {};
  action.sa_sigaction = on_continue;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGCONT, &action, nullptr);
}

bool Interruption::signal_came() { return caught().signal != 0; }

int Interruption::stop_reason() const {
  const int number = caught().signal;
  return number == 0 && console_.lost() ? lost_line : number;
}

void Interruption::follow_others() { agreed_ = Agreed{}; }

void Interruption::agree(int stop_reason, int rank) {
  agreed_ = Agreed{.stop_reason = stop_reason, .rank = rank};
}

bool Interruption::requested() const {
  return agreed_ ? agreed_->stop_reason != 0 : stop_reason() != 0;
}

std::optional<int> Interruption::signal() const {
  const int number = agreed_ ? agreed_->stop_reason : stop_reason();
  return number > 0 ? std::optional(number) : std::nullopt;
}

std::string Interruption::reason() const {
  for (const auto& [number, name] : signals) {
    if (number == signal()) {
      return std::string(name);
    }
  }
  return console_.lost().value_or("a line of rank " + std::to_string(agreed_ ? agreed_->rank : 0) +
                                  " was lost");
}

// NOLINTNEXTLINE(readability-convert-member-functions-to-static): what it turns off is this
void Interruption::disregard() const {
  for (const auto& [number, name] : signals) {
    std::signal(number, SIG_IGN);
  }
}

void Interruption::wait(std::chrono::seconds time) const {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end && stop_reason() == 0) {
    std::this_thread::sleep_for(moment);
  }
}

void end_by_signal(int number) {
  std::signal(number, SIG_DFL);
  std::raise(number);
  std::abort();  // not reached: the default action of these signals ends the process
}

}  // namespace cnn::bench
