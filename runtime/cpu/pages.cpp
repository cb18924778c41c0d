#include "runtime/cpu/pages.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/divide_up.h"

namespace cnn {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20U;

HostBytes allocate_few(std::size_t bytes) {
  void* data = std::aligned_alloc(cache_line, std::max(cache_line, round_up(bytes, cache_line)));
  return {.data = static_cast<std::byte*>(data),
          .release = [](std::byte* released) { std::free(released); }};
}

// Allocates whole pages of size `granule` in the middle of a reserved address range, with at least
// one small page as guard on each side. The bytes end where the upper guard begins.
HostBytes allocate_guarded(std::size_t bytes, std::size_t granule, std::size_t small_page) {
  const std::size_t usable = round_up(bytes, granule);
  const std::size_t reserved = usable + granule + small_page;
  void* const base = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return {};
  }
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  std::byte* const first =
      static_cast<std::byte*>(base) + (round_up(address + small_page, granule) - address);
  if (mprotect(first, usable, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, reserved);
    return {};
  }
  if (granule == huge_page) {
    // Advice only: without huge pages the memory works, slightly slower.
    static_cast<void>(madvise(first, usable, MADV_HUGEPAGE));
  }
  return {.data = first + (usable - round_up(bytes, cache_line)),
          .release = [base, reserved](std::byte* /*data*/) { munmap(base, reserved); }};
}

}  // namespace

HostBytes allocate_pages(std::size_t bytes) {
  const auto small_page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (bytes < small_page) {
    return allocate_few(bytes);
  }
  const std::size_t granule = bytes >= huge_page ? huge_page : small_page;
  if (bytes > std::numeric_limits<std::size_t>::max() - 3 * huge_page) {
    return {};
  }
  return allocate_guarded(bytes, granule, small_page);
}

}  // namespace cnn
