#include "tests/support/cuda/runtime/memory.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

#include "runtime/divide_up.h"
#include "runtime/error.h"
#include "tests/support/cuda/runtime/violation.h"

namespace cnn::tests::emulated {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t range_bytes = std::size_t{1} << 40U;  // address space costs nothing
constexpr int poison = 0xFF;

std::size_t whole_pages(std::size_t bytes) { return round_up(bytes, page); }

std::byte* reserve(std::size_t bytes) {
  void* data =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(data != MAP_FAILED, "no addresses are left for the memory of an emulated device");
  return static_cast<std::byte*>(data);
}

void protect(std::byte* data, std::size_t bytes, bool is_open) {
  check(::mprotect(data, whole_pages(bytes), is_open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0,
        "the protection of emulated memory cannot be changed");
}

// Returns whether the rest of a block's last page still has the poison, which a write past the end
// destroys.
bool is_untouched_behind(const Block& block) {
  const std::byte* end = block.data + whole_pages(block.bytes);
  return std::all_of(static_cast<const std::byte*>(block.data + block.bytes), end,
                     [](std::byte b) { return b == std::byte{poison}; });
}

}  // namespace

Memory::Memory(int devices, std::size_t bytes_per_device)
    : bytes_per_device_(bytes_per_device), devices_(static_cast<std::size_t>(devices)) {
  for (Device& device : devices_) {
    device.range = reserve(range_bytes);
    // Huge pages make it cheaper to open and close blocks, which costs time per page.
    ::madvise(device.range, range_bytes, MADV_HUGEPAGE);
  }
}

Memory::~Memory() {
  for (const Device& device : devices_) {
    ::munmap(device.range, range_bytes);
  }
}

std::byte* Memory::allocate(int device, std::size_t bytes) {
  Device& d = devices_[static_cast<std::size_t>(device)];
  const std::size_t whole = whole_pages(bytes);
  if (bytes > bytes_per_device_ || whole > free_bytes(device) ||
      d.taken + whole + page > range_bytes) {
    return nullptr;
  }
  std::byte* data = d.range + d.taken;
  d.taken += whole + page;
  d.used += whole;
  d.peak = std::max(d.peak, d.used);
  protect(data, bytes, true);
  std::memset(data, poison, whole);
  protect(data, bytes, d.is_open);
  blocks_[data] = {.data = data, .bytes = bytes, .kind = MemoryKind::device, .device = device};
  return data;
}

std::byte* Memory::pin(std::size_t bytes) {
  const std::size_t whole = whole_pages(bytes);
  std::byte* data = reserve(whole + page);
  protect(data, bytes, true);
  std::memset(data, poison, whole);
  blocks_[data] = {.data = data, .bytes = bytes, .kind = MemoryKind::pinned, .device = 0};
  return data;
}

bool Memory::add_registered(std::byte* data, std::size_t bytes) {
  const auto next = blocks_.lower_bound(data);
  const bool overlaps =
      (next != blocks_.end() && next->first < data + bytes) || find(data) != nullptr;
  if (!overlaps) {
    blocks_[data] = {.data = data, .bytes = bytes, .kind = MemoryKind::registered, .device = 0};
  }
  return !overlaps;
}

std::optional<Block> Memory::release(std::byte* data, MemoryKind kind) {
  const auto found = blocks_.find(data);
  if (found == blocks_.end() || found->second.kind != kind) {
    return std::nullopt;
  }
  const Block block = found->second;
  const std::size_t whole = whole_pages(block.bytes);
  if (kind != MemoryKind::registered) {
    protect(data, block.bytes, true);
    if (!is_untouched_behind(block)) {
      violate("something wrote past the end of " + name_of(data));
    }
    protect(data, block.bytes, false);
    ::madvise(data, whole, MADV_DONTNEED);
  }
  if (kind == MemoryKind::device) {
    devices_[static_cast<std::size_t>(block.device)].used -= whole;
  }
  blocks_.erase(found);
  return block;
}

const Block* Memory::find(const void* at) const {
  const auto next = blocks_.upper_bound(static_cast<const std::byte*>(at));
  if (next == blocks_.begin()) {
    return nullptr;
  }
  const Block& block = std::prev(next)->second;
  return block.contains(at) ? &block : nullptr;
}

int Memory::range_of(const void* at) const {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (at >= devices_[d].range &&
        static_cast<const std::byte*>(at) < devices_[d].range + range_bytes) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

std::size_t Memory::free_bytes(int device) const {
  return bytes_per_device_ - devices_[static_cast<std::size_t>(device)].used;
}

std::size_t Memory::peak_bytes() const {
  return std::ranges::max_element(devices_, {}, &Device::peak)->peak;
}

std::vector<Block> Memory::blocks() const {
  std::vector<Block> all;
  for (const auto& [data, block] : blocks_) {
    all.push_back(block);
  }
  return all;
}

void Memory::open(int device, bool is_open) {
  Device& d = devices_[static_cast<std::size_t>(device)];
  if (d.is_open == is_open) {
    return;
  }
  d.is_open = is_open;
  for (const auto& [data, block] : blocks_) {
    if (block.kind == MemoryKind::device && block.device == device) {
      protect(block.data, block.bytes, is_open);
    }
  }
}

std::string Memory::name_of(const void* at) const {
  if (const Block* block = find(at)) {
    const std::string where = block->kind == MemoryKind::device
                                  ? "on device " + std::to_string(block->device)
                              : block->kind == MemoryKind::pinned ? "of pinned host memory"
                                                                  : "of registered host memory";
    return "byte " + std::to_string(static_cast<const std::byte*>(at) - block->data) + " of the " +
           std::to_string(block->bytes) + " bytes " + where;
  }
  if (const int device = range_of(at); device >= 0) {
    return "an address of device " + std::to_string(device) + " at which no block is alive";
  }
  return "host memory that is not pinned";
}

}  // namespace cnn::tests::emulated
