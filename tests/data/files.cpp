#include "tests/data/files.h"

#include <cstring>
#include <zlib.h>

#include "runtime/error.h"

namespace cnn::data {

namespace fs = std::filesystem;

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  constexpr int gzip_form = 15 + 16;
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, gzip_form, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 64, '\0');
  std::string input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string little_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(number >> (8 * i));
  }
  return text;
}

std::string idx(const std::vector<std::uint32_t>& dims, const std::string& elements) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      text += static_cast<char>(dim >> shift);
    }
  }
  return text + elements;
}

void write_mnist(const TemporaryFolder& folder, std::uint32_t count) {
  std::string images;
  std::string labels;
  for (std::uint32_t i = 0; i < count; ++i) {
    images += std::string(784, static_cast<char>(i));
    labels += static_cast<char>(i % 10);
  }
  folder.write("train-images-idx3-ubyte", idx({count, 28, 28}, images));
  folder.write("train-labels-idx1-ubyte", idx({count}, labels));
}

std::string safetensors(const std::string& header, const std::string& bytes) {
  return little_endian(header.size(), 8) + header + bytes;
}

fs::path write_tensors(const TemporaryFolder& folder, std::int64_t count) {
  std::vector<float> images(static_cast<std::size_t>(count) * 6);
  std::vector<std::int64_t> labels(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i] = static_cast<float>(i);
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int64_t>(i);
  }
  const std::vector<StoredTensor> tensors{{"images", StoredType::f32, {count, 2, 1, 3}},
                                          {"labels", StoredType::i64, {count}}};
  fs::path path = folder.path() / "examples.safetensors";
  write_safetensors(path, tensors, [&](std::size_t index) {
    return index == 0 ? std::as_bytes(std::span(images)) : std::as_bytes(std::span(labels));
  });
  return path;
}

ReadExample read_one(const Dataset& dataset, std::int64_t index) {
  ReadExample example;
  example.image.resize(dataset.format().bytes());
  dataset.read(index, {std::as_writable_bytes(std::span(example.image)), &example.label});
  return example;
}

}  // namespace cnn::data
