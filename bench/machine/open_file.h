#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace cnn::bench {

// A file that is read repeatedly from its start without allocations, for the system's counters.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path);
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  // Returns as much of the text as `buffer` holds; empty if the file cannot be read.
  std::string_view text(std::span<char> buffer) const;
  // Returns the number that the file contains now.
  std::optional<std::uint64_t> number() const;

 private:
  int descriptor_;
};

}  // namespace cnn::bench
