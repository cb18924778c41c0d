#include "tests/support/cuda/runtime/fault.h"

#include <csignal>
#include <mutex>
#include <string>
#include <unistd.h>

#include "tests/support/cuda/runtime/driver.h"

namespace cnn::tests::emulated {
namespace {

// Returns the previous fault handler, such as a sanitizer's.
struct sigaction& previous() {
  static struct sigaction action {};
  return action;
}

// The process ends anyway, so the handler may do what is forbidden in handlers, such as allocate.
// It names no address if the faulting thread holds the driver's lock.
void tell(int /*signal*/, siginfo_t* info, void* /*context*/) {
  ::sigaction(SIGSEGV, &previous(), nullptr);
  Driver& d = driver();
  const std::unique_lock lock(d.lock.mutex, std::try_to_lock);
  if (lock.owns_lock() && d.memory.range_of(info->si_addr) >= 0) {
    const std::string text = "emulated GPU: a fault at " + d.memory.name_of(info->si_addr) +
                             ": the host touches memory of a device, or a kernel what it may not\n";
    static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
  }
}  // the access repeats and now ends the process

}  // namespace

void name_faults() {
  struct sigaction action {};
  action.sa_sigaction = tell;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before {};
  ::sigaction(SIGSEGV, &action, &before);
  if (before.sa_sigaction != tell) {
    previous() = before;
  }
}

}  // namespace cnn::tests::emulated
