#include "tests/support/cuda/runtime/address_check.h"

#include <algorithm>
#include <array>
#include <link.h>
#include <mutex>
#include <optional>
#include <pthread.h>

#include "tests/support/cuda/runtime/driver.h"
#include "tests/support/cuda/runtime/violation.h"
#include "tests/support/grid/grid.h"

namespace cnn::tests::emulated {
namespace {

using Range = std::span<const std::byte>;

// The loaded segment that contains an address; dl_iterate_phdr() fills it.
struct SegmentSearch {
  const std::byte* at = nullptr;
  std::optional<Range> found;
};

int search_segments(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<SegmentSearch*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
      const auto* begin = reinterpret_cast<const std::byte*>(object->dlpi_addr + segment.p_vaddr);
      if (search.at >= begin && search.at < begin + segment.p_memsz) {
        search.found = Range(begin, segment.p_memsz);
        return 1;  // ends the search
      }
    }
  }
  return 0;
}

// Returns the constants and static variables at an address; they stand for those of a kernel's
// image.
std::optional<Range> static_memory_at(const std::byte* at) {
  SegmentSearch search{.at = at, .found = std::nullopt};
  dl_iterate_phdr(search_segments, &search);
  return search.found;
}

Range find_stack() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t bytes = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  return {static_cast<const std::byte*>(begin), bytes};
}

// Returns the stack of this thread, which includes thread-local variables such as threadIdx. It is
// cached, because it never moves and finding it takes system calls.
Range stack_of_thread() {
  thread_local const Range stack = find_stack();
  return stack;
}

// Returns the range of the kernel's builtin variables. In a library opened by name, it is not next
// to the stack.
Range builtins_of_thread() {
  std::array<const std::byte*, 4> places{
      reinterpret_cast<const std::byte*>(&threadIdx), reinterpret_cast<const std::byte*>(&blockIdx),
      reinterpret_cast<const std::byte*>(&blockDim), reinterpret_cast<const std::byte*>(&gridDim)};
  std::ranges::sort(places);
  return {places.front(), places.back() + sizeof(threadIdx)};
}

}  // namespace

CheckedAddresses::CheckedAddresses(int device, Range values) : device_(device) {
  allowed_[0] = stack_of_thread();
  allowed_[1] = values;
  allowed_[2] = builtins_of_thread();
  next_ = lasting;
  grid::set_address_check(this);
}

CheckedAddresses::~CheckedAddresses() { grid::set_address_check(nullptr); }

bool CheckedAddresses::contains(Range range, const std::byte* at, std::size_t bytes) {
  return at >= range.data() && at + bytes <= range.data() + range.size();
}

std::string CheckedAddresses::why_not(const std::byte* at, std::size_t bytes,
                                      grid::Access /*access*/) {
  for (const Range range : allowed_) {
    if (contains(range, at, bytes)) {
      return "";
    }
  }
  return look_up(at, bytes);
}

std::string CheckedAddresses::look_up(const std::byte* at, std::size_t bytes) {
  std::optional<Range> range = static_memory_at(at);
  if (!range) {
    Driver& d = driver();
    const std::scoped_lock lock(d.lock.mutex);
    const Block* block = d.memory.find(at);
    const bool visible = block != nullptr && contains({block->data, block->bytes}, at, bytes) &&
                         (block->kind != MemoryKind::device || block->device == device_);
    if (!visible) {
      const std::string why = d.memory.name_of(at) + ", which a kernel on device " +
                              std::to_string(device_) + " cannot touch";
      if (d.memory.range_of(at) >= 0) {
        // Reports it here, because the access itself would end the process.
        violate("a kernel touches " + why);
      }
      return why;
    }
    range = Range(block->data, block->bytes);
  }
  allowed_[next_] = *range;
  next_ = next_ + 1 == allowed_.size() ? lasting : next_ + 1;
  return "";
}

}  // namespace cnn::tests::emulated
