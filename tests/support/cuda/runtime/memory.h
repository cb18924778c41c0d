#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cnn::tests::emulated {

enum class MemoryKind : std::uint8_t { device, pinned, registered };

// A piece of memory that the runtime knows.
struct Block {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind{};
  int device = 0;
  bool contains(const void* at) const {
    return at >= data && static_cast<const std::byte*>(at) < data + bytes;
  }
};

// All memory of the emulated devices. Each device has a range of addresses of its own, from which
// blocks are taken once and never again, so that a stale address is always known as one. A block
// has pages without access behind it, is filled with ones in every bit (NaN) when it is taken, and
// its pages are open only while its device has work: the host cannot read it otherwise. Not
// thread-safe: the driver's lock guards it.
class Memory {
 public:
  Memory(int devices, std::size_t bytes_per_device);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* allocate(int device, std::size_t bytes);  // null: not that many are free
  std::byte* pin(std::size_t bytes);
  // False: the range overlaps one that is known already.
  bool add_registered(std::byte* data, std::size_t bytes);
  // Takes a block away by its first byte; nothing if there is none of that kind. Tells of a
  // violation if bytes behind the block were written.
  std::optional<Block> release(std::byte* data, MemoryKind kind);

  const Block* find(const void* at) const;  // the block with that byte, or null
  // The device in whose range of addresses a byte lies, of a block or not; -1 for none.
  int range_of(const void* at) const;
  std::size_t free_bytes(int device) const;
  std::size_t peak_bytes() const;  // the most that a device has had in use
  std::size_t bytes_per_device() const { return bytes_per_device_; }
  std::vector<Block> blocks() const;

  // Whether code that runs now may touch the device's blocks.
  void open(int device, bool is_open);

  // "byte 12 of the 4096 bytes on device 0", for messages.
  std::string name_of(const void* at) const;

 private:
  struct Device {
    std::byte* range = nullptr;
    std::size_t taken = 0;  // of the range
    std::size_t used = 0;   // bytes of live blocks
    std::size_t peak = 0;   // of `used`
    bool is_open = false;
  };

  std::size_t bytes_per_device_;
  std::vector<Device> devices_;
  std::map<const std::byte*, Block> blocks_;  // by their first byte
};

}  // namespace cnn::tests::emulated
