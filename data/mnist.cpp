#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "data/catalog.h"
#include "data/file.h"
#include "data/gzip.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t side = 28;
constexpr std::int64_t pixels = side * side;
constexpr int classes_of_mnist = 10;

// An idx file: two zero bytes, the element type (8: unsigned byte), the number of dimensions, the
// dimensions as big-endian 32-bit numbers, the elements.
struct Idx {
  std::vector<std::int64_t> dims;
  std::vector<std::byte> elements;
};

std::int64_t big_endian(std::span<const std::byte> bytes) {
  std::int64_t number = 0;
  for (const std::byte byte : bytes) {
    number = number * 256 + static_cast<std::int64_t>(byte);
  }
  return number;
}

// Bytes from a plain or a compressed file, in order.
class Source {
 public:
  explicit Source(const fs::path& path) : file_(path) {
    if (path.extension() == ".gz") {
      packed_.resize(file_.size());
      file_.read(0, packed_);
      gzip_.emplace(packed_);
    }
  }
  std::vector<std::byte> read(std::size_t bytes) {
    if (gzip_) {
      return gzip_->read(bytes);
    }
    // Before memory is taken: the number comes from the file and may be anything.
    check(bytes <= file_.size() - position_, "it holds less than its header promises");
    std::vector<std::byte> result(bytes);
    file_.read(position_, result);
    position_ += bytes;
    return result;
  }
  void expect_end() {
    if (gzip_) {
      return gzip_->expect_end();
    }
    check(position_ == file_.size(), "it holds more than its header promises");
  }

 private:
  InputFile file_;
  std::vector<std::byte> packed_;
  std::optional<GzipReader> gzip_;
  std::uint64_t position_ = 0;
};

Idx parse_idx(Source& source, std::size_t rank) {
  const std::vector<std::byte> magic = source.read(4);
  check(big_endian(magic) == 0x800 + static_cast<std::int64_t>(rank),
        "it does not start as an idx file of " + std::to_string(rank) +
            "-dimensional unsigned bytes does");
  const std::vector<std::byte> header = source.read(4 * rank);
  Idx idx;
  std::int64_t bytes = 1;  // dimensions of images are checked to be 28, so this stays small
  for (std::size_t axis = 0; axis < rank; ++axis) {
    idx.dims.push_back(big_endian(std::span(header).subspan(4 * axis, 4)));
    check(axis == 0 || idx.dims.back() == side, "its images are not 28 x 28");
    bytes *= idx.dims.back();
  }
  check(bytes > 0, "it holds no examples");
  idx.elements = source.read(static_cast<std::size_t>(bytes));
  source.expect_end();
  return idx;
}

fs::path find_file(const fs::path& dir, const std::string& stem, const std::string& type) {
  for (const char* separator : {"-", "."}) {
    for (const char* extension : {"", ".gz"}) {
      fs::path path = dir / std::string(stem).append(separator).append(type).append(extension);
      if (std::error_code ignored; fs::exists(path, ignored)) {
        return path;
      }
    }
  }
  throw Error("there is no file " + stem + "-" + type + " or " + stem + "-" + type + ".gz in " +
              dir.string());
}

Idx read_idx(const fs::path& path, std::size_t rank) {
  try {
    Source source(path);
    return parse_idx(source, rank);
  } catch (const Error& error) {
    throw Error("cannot use " + path.string() + ": " + error.what());
  }
}

class Mnist final : public Dataset {
 public:
  Mnist(std::vector<std::byte> images, std::vector<std::byte> labels)
      : images_(std::move(images)), labels_(std::move(labels)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  ImageFormat format() const override { return {side, side, 1, DataType::u8}; }
  int classes() const override { return classes_of_mnist; }
  void read(std::int64_t index, const Example& into) const override {
    std::memcpy(into.image.data(), images_.data() + index * pixels, pixels);
    *into.label = static_cast<std::int32_t>(labels_[static_cast<std::size_t>(index)]);
  }

 private:
  std::vector<std::byte> images_, labels_;
};

}  // namespace

std::unique_ptr<Dataset> open_mnist(const Options& options) {
  const std::string stem = options.training ? "train" : "t10k";
  const fs::path image_path = find_file(options.dir, stem + "-images", "idx3-ubyte");
  const fs::path label_path = find_file(options.dir, stem + "-labels", "idx1-ubyte");
  Idx images = read_idx(image_path, 3);
  Idx labels = read_idx(label_path, 1);
  check(images.dims[0] == labels.dims[0],
        image_path.string() + " holds " + std::to_string(images.dims[0]) + " images, but " +
            label_path.string() + " " + std::to_string(labels.dims[0]) + " labels");
  for (const std::byte label : labels.elements) {
    check(static_cast<int>(label) < classes_of_mnist, label_path.string() + ": label " +
                                                          std::to_string(static_cast<int>(label)) +
                                                          " is none of 0 to 9");
  }
  return std::make_unique<Mnist>(std::move(images.elements), std::move(labels.elements));
}

}  // namespace cnn::data
