#include "runtime/disk_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "runtime/error.h"
#include "runtime/memory_plan.h"
#include "runtime/resource_limits.h"

namespace cnn {
namespace {

// Calls transfer(done) until all bytes are moved; it returns what pread() and pwrite() return.
// Returns the error number, 0 for none, or -1 if a transfer moved nothing.
template <class Transfer>
int move_all(std::size_t bytes, Transfer transfer) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t moved = transfer(done);
    if (moved < 0 && errno == EINTR) {
      continue;
    }
    if (moved <= 0) {
      return moved < 0 ? errno : -1;
    }
    done += static_cast<std::size_t>(moved);
  }
  return 0;
}

}  // namespace

DiskFile::DiskFile(const std::filesystem::path& folder, std::string label)
    : label_(std::move(label)) {
  std::string path = (folder / "cnn_lms_disk.XXXXXX").string();
  descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    throw Error(label_ +
                ": cannot create a file in this folder: " + std::generic_category().message(errno));
  }
  static_cast<void>(::unlink(path.c_str()));
  name_ = std::filesystem::path(path).filename().string();
  try {
    find_direct();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

DiskFile::~DiskFile() { ::close(descriptor_); }

// Some file systems refuse the mode of the descriptor, others the first transfer. A file that was
// opened with the mode and refused would keep its name, so the mode is set afterwards.
void DiskFile::find_direct() {
  set_direct(true);
  if (!is_direct_) {
    return;
  }
  alignas(disk_alignment) static constexpr std::array<std::byte, disk_alignment> probe{};
  const int problem = move_all(probe.size(), [&](std::size_t done) {
    return ::pwrite(descriptor_, probe.data() + done, probe.size() - done,
                    static_cast<off_t>(done));
  });
  if (problem == EINVAL) {
    set_direct(false);
  } else if (problem != 0) {
    fail("write", probe.size(), write_problem_text(problem));
  }
}

void DiskFile::set_direct(bool direct) {
  const int flags = ::fcntl(descriptor_, F_GETFL);
  const int wanted = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
  is_direct_ = ::fcntl(descriptor_, F_SETFL, wanted) == 0 && direct;
}

void DiskFile::reserve(std::size_t bytes) {
  int problem = 0;
  do {
    problem = ::fallocate(descriptor_, 0, 0, static_cast<off_t>(std::max<std::size_t>(bytes, 1)));
  } while (problem != 0 && errno == EINTR);
  // A file system without the call takes the bytes as they are written.
  if (problem != 0 && errno != EOPNOTSUPP) {
    fail("reserve", bytes, write_problem_text(errno));
  }
}

void DiskFile::write(std::span<const std::byte> bytes, std::size_t at) const {
  const int problem = move_all(bytes.size(), [&](std::size_t done) {
    return ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                    static_cast<off_t>(at + done));
  });
  if (problem != 0) {
    fail("write", bytes.size(),
         problem < 0 ? "the disk takes nothing" : write_problem_text(problem));
  }
}

void DiskFile::read(std::span<std::byte> bytes, std::size_t at) const {
  const int problem = move_all(bytes.size(), [&](std::size_t done) {
    return ::pread(descriptor_, bytes.data() + done, bytes.size() - done,
                   static_cast<off_t>(at + done));
  });
  if (problem != 0) {
    fail("read", bytes.size(),
         problem < 0 ? "the file ends before them" : std::generic_category().message(problem));
  }
}

void DiskFile::flush() const {
  if (::fdatasync(descriptor_) != 0) {
    fail("write", 0, write_problem_text(errno));
  }
  static_cast<void>(::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED));
}

void DiskFile::fail(const char* verb, std::size_t bytes, const std::string& cause) const {
  throw Error(label_ + ": cannot " + verb + " " + std::to_string(bytes) + " bytes of its file " +
              name_ + ": " + cause);
}

}  // namespace cnn
