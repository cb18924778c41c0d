#include "allreduce/watched_process.h"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace cnn::allreduce {

WatchedProcess::WatchedProcess(int process)
    : process_(process),
      descriptor_(process == 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, process, 0))) {}

WatchedProcess::WatchedProcess(WatchedProcess&& other) noexcept
    : process_(other.process_), descriptor_(std::exchange(other.descriptor_, -1)) {}

WatchedProcess::~WatchedProcess() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

bool WatchedProcess::ended() const {
  if (process_ == 0) {
    return false;
  }
  if (descriptor_ < 0) {  // it had ended before, or the kernel is too old to tell
    return ::kill(process_, 0) != 0 && errno == ESRCH;
  }
  pollfd asked{descriptor_, POLLIN, 0};
  return ::poll(&asked, 1, 0) > 0;
}

}  // namespace cnn::allreduce
