#include "bench/run/turns.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr int works = 0, is_next = 1;  // bytes of the file
constexpr mode_t read_and_write = 0666;

}  // namespace

Turns::Turns(const std::string& path, Clock::duration turn)
    : path_(path),
      turn_(turn),
      descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, read_and_write)),
      start_(Clock::now()) {
  check(descriptor_ >= 0, fmt::format("--take_turns={}: {}", path, std::strerror(errno)));
}

Turns::~Turns() { close(descriptor_); }

void Turns::lock(int byte, short kind) const {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  // Locks of the open file, not of the process: a library that opens the file cannot drop them.
  while (fcntl(descriptor_, F_OFD_SETLKW, &range) != 0) {
    check(errno == EINTR,
          fmt::format("--take_turns={}: cannot be locked ({})", path_, std::strerror(errno)));
  }
}

void Turns::enter() {
  const Clock::time_point asked = Clock::now();
  lock(is_next, F_WRLCK);
  lock(works, F_WRLCK);
  lock(is_next, F_UNLCK);
  start_ = Clock::now();
  waited_ += start_ - asked;
}

void Turns::begin() { enter(); }

void Turns::pass() {
  lock(works, F_UNLCK);
  enter();
  ++passed_;
}

}  // namespace cnn::bench
