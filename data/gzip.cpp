#include "data/gzip.h"

#include <algorithm>
#include <array>
#include <limits>
#include <zlib.h>

#include "runtime/error.h"

namespace cnn::data {

struct GzipReader::State {
  z_stream stream{};
  std::span<const std::byte> rest;  // not yet passed to zlib, which counts in 32 bits
  bool ended = false;
};

GzipReader::GzipReader(std::span<const std::byte> packed) : state_(std::make_unique<State>()) {
  constexpr int gzip_only = 15 + 16;
  state_->rest = packed;
  check(inflateInit2(&state_->stream, gzip_only) == Z_OK, "zlib does not start");
}

GzipReader::~GzipReader() { inflateEnd(&state_->stream); }

// Returns fewer bytes than requested only at the end.
std::size_t GzipReader::inflate_into(std::span<std::byte> into) {
  z_stream& stream = state_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  stream.avail_out = static_cast<uInt>(into.size());
  while (stream.avail_out > 0 && !state_->ended) {
    if (stream.avail_in == 0) {
      const std::size_t piece = std::min<std::size_t>(state_->rest.size(), 1U << 30);
      // zlib's interface lacks const; it only reads.
      stream.next_in =
          const_cast<Bytef*>(reinterpret_cast<const Bytef*>(state_->rest.data()));  // NOLINT
      stream.avail_in = static_cast<uInt>(piece);
      state_->rest = state_->rest.subspan(piece);
    }
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      // The format permits several streams in one file, as bgzip writes.
      const bool more = stream.avail_in > 0 || !state_->rest.empty();
      state_->ended = !more;
      check(!more || inflateReset(&stream) == Z_OK, "zlib does not restart");
    } else if (status == Z_BUF_ERROR) {
      throw Error("the compressed data is cut off");
    } else if (status != Z_OK) {
      throw Error("the compressed data is damaged");
    }
  }
  return into.size() - stream.avail_out;
}

std::vector<std::byte> GzipReader::read(std::size_t bytes) {
  constexpr std::size_t piece = 4U << 20;
  std::vector<std::byte> result;
  while (result.size() < bytes) {
    const std::size_t before = result.size();
    result.resize(before + std::min(piece, bytes - before));
    const auto part = std::span(result).subspan(before);
    check(inflate_into(part) == part.size(), "it holds less than its header promises");
  }
  return result;
}

void GzipReader::expect_end() {
  std::array<std::byte, 1> extra{};
  check(inflate_into(extra) == 0, "it holds more than its header promises");
}

}  // namespace cnn::data
