// Replaces pread() in the program that it is preloaded into. READS_LOG=FILE: each read of a
// TFRecord shard adds a line of rank, file name, offset and bytes. READS_DELAY_MS=N: each read of a
// shard takes that long.
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
    // Appending one line by one call keeps lines of several processes apart.
    const int file = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      std::abort();  // a test must not take an incomplete log for the truth
    }
    ::close(file);
  }
}

}  // namespace

extern "C" ssize_t pread(int descriptor, void* into, std::size_t bytes, off_t offset) {
  watch(descriptor, bytes, offset);
  return ::syscall(SYS_pread64, descriptor, into, bytes, offset);
}
