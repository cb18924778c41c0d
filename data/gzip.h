#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace cnn::data {

// Decompresses a gzip file in memory, piece by piece, so that the caller can bound the size after
// the first bytes. Throws Error without a file name.
class GzipReader {
 public:
  explicit GzipReader(std::span<const std::byte> packed);  // must outlive the reader
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Returns the next `bytes` bytes; allocates only for decompressed data. Throws if there are fewer
  // bytes, or if the file is damaged.
  std::vector<std::byte> read(std::size_t bytes);
  // Throws Error unless everything is read, the checksums match and no bytes follow.
  void expect_end();

 private:
  struct State;  // zlib's
  std::size_t inflate_into(std::span<std::byte> into);

  std::unique_ptr<State> state_;
};

}  // namespace cnn::data
