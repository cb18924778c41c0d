#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace cnn::bench {

// A file that is read from its start again and again, without an allocation: counters of the
// system.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path);
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  // As much of its text as `buffer` takes; empty if it cannot be read.
  std::string_view text(std::span<char> buffer) const;
  // The number that it holds now.
  std::optional<std::uint64_t> number() const;

 private:
  int descriptor_;
};

}  // namespace cnn::bench
