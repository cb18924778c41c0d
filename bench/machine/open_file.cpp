#include "bench/machine/open_file.h"

#include <array>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace cnn::bench {

OpenFile::OpenFile(const std::filesystem::path& path)
    : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

OpenFile::OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

std::string_view OpenFile::text(std::span<char> buffer) const {
  const ssize_t size = pread(descriptor_, buffer.data(), buffer.size(), 0);
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

std::optional<std::uint64_t> OpenFile::number() const {
  std::array<char, 32> buffer{};
  const std::string_view digits = text(buffer);
  std::uint64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace cnn::bench
