#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace cnn {

// A temporary file for tensors that host memory has no room for. Its name is removed as soon as it
// is open, so that nothing stays behind, however the process ends. Transfers bypass the page cache
// by direct I/O (O_DIRECT) where the file system has it: the cache would take the very memory that
// is short. Addresses, offsets and sizes of transfers are multiples of disk_alignment.
class DiskFile {
 public:
  // Creates the file in this folder. label: how messages name the folder, such as
  // "--lms_disk=/scratch". Throws Error if it cannot.
  DiskFile(const std::filesystem::path& folder, std::string label);
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  // Returns whether transfers bypass the page cache.
  bool is_direct() const { return is_direct_; }
  const std::string& label() const { return label_; }
  // Takes so many bytes of the disk at once, where the file system can, so that it is full before
  // the first step or never. Throws Error if it is.
  void reserve(std::size_t bytes);
  // Transfer all bytes; thread-safe for ranges that do not overlap. Throw Error with label, file
  // and cause.
  void write(std::span<const std::byte> bytes, std::size_t at) const;
  void read(std::span<std::byte> bytes, std::size_t at) const;
  // Waits until the disk has what was written, and drops it from the page cache: for measurements.
  void flush() const;

 private:
  void find_direct();
  void set_direct(bool direct);
  [[noreturn]] void fail(const char* verb, std::size_t bytes, const std::string& cause) const;

  std::string label_, name_;
  int descriptor_ = -1;
  bool is_direct_ = false;
};

}  // namespace cnn
