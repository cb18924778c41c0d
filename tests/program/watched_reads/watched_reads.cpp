// Replaces pread() in a program that preloads this library. With READS_LOG=FILE, each read of a
// TFRecord shard appends a line of rank, file name, offset and bytes. With READS_DELAY_MS=N, each
// read of a shard takes N ms longer. With READS_FAIL=TEXT, reads of files whose paths contain the
// text fail as those of a broken disk, except for the first READS_FAIL_AFTER of them.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/syscall.h>
#include <sys/types.h>
#include <thread>
#include <unistd.h>

namespace {

std::string path_of(int descriptor) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t bytes = ::readlink(link.c_str(), path, sizeof(path));
  return bytes < 0 ? "" : std::string(path, static_cast<std::size_t>(bytes));
}

void watch(int descriptor, std::size_t bytes, off_t offset) {
  const std::string path = path_of(descriptor);
  if (path.find("-of-") == std::string::npos) {
    return;
  }
  if (const char* delay = std::getenv("READS_DELAY_MS")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(delay)));
  }
  if (const char* log = std::getenv("READS_LOG")) {
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    const std::string line = std::string(rank == nullptr ? "0" : rank) + " " +
                             path.substr(path.rfind('/') + 1) + " " + std::to_string(offset) + " " +
                             std::to_string(bytes) + "\n";
    // Appending each line by one call keeps the lines of several processes intact.
    const int file = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      std::abort();  // aborts, because a test must not trust an incomplete log
    }
    ::close(file);
  }
}

bool fails(int descriptor) {
  static std::atomic<int> reads = 0;
  const char* const broken = std::getenv("READS_FAIL");
  const char* const after = std::getenv("READS_FAIL_AFTER");
  return broken != nullptr && path_of(descriptor).find(broken) != std::string::npos &&
         ++reads > (after == nullptr ? 0 : std::atoi(after));
}

}  // namespace

extern "C" ssize_t pread(int descriptor, void* into, std::size_t bytes, off_t offset) {
  watch(descriptor, bytes, offset);
  if (fails(descriptor)) {
    errno = EIO;
    return -1;
  }
  return ::syscall(SYS_pread64, descriptor, into, bytes, offset);
}
