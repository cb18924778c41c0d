#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cnn::data {

// A regular file open for reading at any position, by any thread. All members throw Error with the
// file's name.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when the file was opened
  // Fills `into` with the bytes from `offset` on; throws if the file ends earlier.
  void read(std::uint64_t offset, std::span<std::byte> into) const;
  // Hints that this part will be read soon; returns at once.
  void read_ahead(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

std::vector<std::byte> read_whole(const std::filesystem::path& path);

// A file that gets its name only when it is complete and on disk: written as <path>.tmp in the same
// folder, renamed by commit(), removed by the destructor without a commit().
class AtomicFile {
 public:
  static constexpr const char* suffix = ".tmp";

  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();  // fsync, rename, fsync of the folder

 private:
  void close() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

// Returns text from a file for one line of an error message: shortened, without control bytes.
std::string printable(std::string_view text);

void write_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace cnn::data
