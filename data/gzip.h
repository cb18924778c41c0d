#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace cnn::data {

// Unpacks a gzip file held in memory, piece by piece, so that the reader of the first bytes decides
// how much may follow. Throws Error without a file name.
class GzipReader {
 public:
  explicit GzipReader(std::span<const std::byte> packed);  // which must outlive the reader
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // The next `bytes` bytes; memory grows with what really comes. Throws if there are fewer, or if
  // the file is damaged.
  std::vector<std::byte> read(std::size_t bytes);
  // Throws unless all is read, the check sums are right and nothing follows in the file.
  void expect_end();

 private:
  struct State;  // zlib's
  std::size_t inflate_into(std::span<std::byte> into);

  std::unique_ptr<State> state_;
};

}  // namespace cnn::data
