#include "allreduce/watched_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace cnn::allreduce {
namespace {

// Reads the state letter after the process name, which may itself contain brackets. Allocates
// nothing, because it runs while a rank waits in an exchange.
bool is_stopped(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return false;
  }
  std::array<char, 512> text{};
  const ssize_t bytes = ::read(descriptor, text.data(), text.size());
  ::close(descriptor);
  const std::string_view all(text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  const std::size_t bracket = all.rfind(')');
  return bracket != std::string_view::npos && all.substr(bracket).starts_with(") T ");
}

}  // namespace

WatchedProcess::WatchedProcess(int process)
    : process_(process),
      stat_file_("/proc/" + std::to_string(process) + "/stat"),
      descriptor_(process == 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, process, 0))) {}

WatchedProcess::WatchedProcess(WatchedProcess&& other) noexcept
    : process_(other.process_),
      stat_file_(std::move(other.stat_file_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      was_stopped_(other.was_stopped_),
      last_check_(other.last_check_),
      stopped_(other.stopped_) {}

WatchedProcess::~WatchedProcess() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

bool WatchedProcess::ended() const {
  if (process_ == 0) {
    return false;
  }
  if (descriptor_ < 0) {  // It had ended before, or the kernel has no pidfd_open.
    return ::kill(process_, 0) != 0 && errno == ESRCH;
  }
  pollfd request{descriptor_, POLLIN, 0};
  return ::poll(&request, 1, 0) > 0;
}

std::chrono::steady_clock::duration WatchedProcess::stopped() {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds check_interval{50}, longest{500};
  const steady_clock::time_point now = steady_clock::now();
  const steady_clock::duration since = now - last_check_;
  if (process_ == 0 || since < check_interval) {
    return stopped_;
  }
  const bool is = is_stopped(stat_file_);
  stopped_ = is && was_stopped_ ? stopped_ + std::min<steady_clock::duration>(since, longest)
                                : steady_clock::duration{};
  was_stopped_ = is;
  last_check_ = now;
  return stopped_;
}

std::string seconds_text(std::chrono::steady_clock::duration time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace cnn::allreduce
