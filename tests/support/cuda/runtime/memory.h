#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cnn::tests::emulated {

enum class MemoryKind : std::uint8_t { device, pinned, registered };

// A block of memory that the runtime knows.
struct Block {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind{};
  int device = 0;
  bool contains(const void* at) const {
    return at >= data && static_cast<const std::byte*>(at) < data + bytes;
  }
};

// All memory of the emulated devices. Each device has an address range from which it takes every
// block only once, so a stale address is always recognised. A block starts filled with NaN (all
// bits one) and has inaccessible pages behind it. Its pages are open only while its device has
// work, so the host cannot read them at other times. The driver's lock guards this class.
class Memory {
 public:
  Memory(int devices, std::size_t bytes_per_device);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* allocate(int device, std::size_t bytes);  // returns null if not enough bytes are free
  std::byte* pin(std::size_t bytes);
  // Returns false if the range overlaps a known block.
  bool add_registered(std::byte* data, std::size_t bytes);
  // Releases a block by its first byte and returns it, or nothing if there is no such block of that
  // kind. Reports a violation if bytes behind the block were written.
  std::optional<Block> release(std::byte* data, MemoryKind kind);

  const Block* find(const void* at) const;  // the block that contains this byte, or null
  // Returns the device whose address range contains the byte, in a block or not, or -1.
  int range_of(const void* at) const;
  std::size_t free_bytes(int device) const;
  std::size_t peak_bytes() const;  // the most bytes that one device had in use
  std::size_t bytes_per_device() const { return bytes_per_device_; }
  std::vector<Block> blocks() const;

  // Sets whether running code may touch the device's blocks.
  void open(int device, bool is_open);

  // Returns a text for messages, such as "byte 12 of the 4096 bytes on device 0".
  std::string name_of(const void* at) const;

 private:
  struct Device {
    std::byte* range = nullptr;
    std::size_t taken = 0;  // used part of the address range
    std::size_t used = 0;   // bytes of live blocks
    std::size_t peak = 0;   // maximum of `used`
    bool is_open = false;
  };

  std::size_t bytes_per_device_;
  std::vector<Device> devices_;
  std::map<const std::byte*, Block> blocks_;  // by address of the first byte
};

}  // namespace cnn::tests::emulated
