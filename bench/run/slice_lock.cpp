#include "bench/run/slice_lock.h"

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <utility>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr int works = 0, is_next = 1;  // byte offsets in the file
constexpr mode_t read_and_write = 0666;

}  // namespace

// The turnstile file as opened by one program. The system drops its locks when it is closed.
class SliceLock::File {
 public:
  explicit File(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, read_and_write)) {
    check(descriptor_ >= 0, fmt::format("--take_turns={}: {}", path, std::strerror(errno)));
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Blocks until it has the lock, across signals.
  void lock(int byte) const {
    while (!set(byte, F_WRLCK, F_OFD_SETLKW)) {
    }
  }
  // Returns false if another program has the lock.
  bool try_lock(int byte) const { return set(byte, F_WRLCK, F_OFD_SETLK); }
  void unlock(int byte) const { set(byte, F_UNLCK, F_OFD_SETLK); }

 private:
  // Locks belong to the open file, not to the process: a library that opens the file cannot drop
  // them.
  bool set(int byte, short kind, int command) const {
    struct flock range {};
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    range.l_start = byte;
    range.l_len = 1;
    const bool done = fcntl(descriptor_, command, &range) == 0;
    check(done || errno == EINTR || errno == EAGAIN || errno == EACCES,
          fmt::format("--take_turns={}: cannot be locked ({})", path_, std::strerror(errno)));
    return done;
  }

  std::string path_;
  int descriptor_ = -1;
};

// State shared by the program and its waiting thread.
struct SliceLock::Wait {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::exception_ptr error;
};

SliceLock::SliceLock(const std::string& path, Clock::duration turn,
                     std::function<bool()> asked_to_end)
    : turn_(turn),
      asked_to_end_(std::move(asked_to_end)),
      file_(std::make_shared<File>(path)),
      start_(Clock::now()) {}

SliceLock::~SliceLock() = default;

void SliceLock::enter() {
  const Clock::time_point request = Clock::now();
  if (!asked_to_end_) {
    file_->lock(is_next);
    file_->lock(works);
    file_->unlock(is_next);
  } else if (file_->try_lock(is_next) && file_->try_lock(works)) {
    file_->unlock(is_next);
  } else {
    wait_on_thread();
  }
  start_ = Clock::now();
  waited_ += start_ - request;
}

// Only a signal to the waiting thread ends a wait for a lock early. So a separate thread waits; if
// the program is asked to end, it abandons that thread, which closes the file and so drops its
// locks when its turn comes, or ends with the program.
void SliceLock::wait_on_thread() {
  constexpr std::chrono::milliseconds between_looks{20};
  const auto wait = std::make_shared<Wait>();
  std::thread([wait, file = file_]() mutable {
    std::exception_ptr error;
    try {
      file->lock(is_next);  // repeated locking has no effect
      file->lock(works);
      file->unlock(is_next);
    } catch (...) {
      error = std::current_exception();
    }
    file.reset();
    const std::scoped_lock lock(wait->mutex);
    wait->over = true;
    wait->error = error;
    wait->changed.notify_all();
  }).detach();
  std::unique_lock lock(wait->mutex);
  while (!wait->changed.wait_for(lock, between_looks, [&] { return wait->over; })) {
    if (asked_to_end_()) {
      file_.reset();
      return;
    }
  }
  if (wait->error) {
    std::rethrow_exception(wait->error);
  }
}

void SliceLock::begin() {
  if (file_) {
    enter();
  }
}

void SliceLock::pass() {
  if (!file_) {
    return;
  }
  file_->unlock(works);
  enter();
  if (file_) {
    ++passed_;
  }
}

}  // namespace cnn::bench
