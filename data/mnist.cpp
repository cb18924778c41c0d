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
constexpr std::uint64_t largest_set = std::uint64_t{1} << 30;  // bytes; the original has 47 MB

std::int64_t big_endian(std::span<const std::byte> bytes) {
  std::int64_t number = 0;
  for (const std::byte byte : bytes) {
    number = number * 256 + static_cast<std::int64_t>(byte);
  }
  return number;
}

// Reads bytes in order from a plain or a compressed file.
class Source {
 public:
  explicit Source(const fs::path& path) : file_(path) {
    check(file_.size() <= largest_set, "it is larger than 1 GiB");
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
    // Checked before the allocation: the number comes from the file and may be arbitrary.
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

// An idx file: two zero bytes, the element type (8: unsigned byte), the number of dimensions, the
// dimensions as big-endian 32-bit numbers, the elements. Opening reads only the header: a
// compressed file of a few megabytes may promise any number of examples.
class IdxFile {
 public:
  IdxFile(fs::path path, std::size_t rank) : path_(std::move(path)) {
    explained([&] {
      source_.emplace(path_);
      read_header(rank);
    });
  }
  const fs::path& path() const { return path_; }
  std::int64_t examples() const { return examples_; }
  std::vector<std::byte> elements() {
    std::vector<std::byte> read;
    explained([&] {
      read = source_->read(static_cast<std::size_t>(bytes_));
      source_->expect_end();
    });
    return read;
  }

 private:
  template <class Work>
  void explained(const Work& work) const {
    try {
      work();
    } catch (const Error& error) {
      throw Error("cannot use " + path_.string() + ": " + error.what());
    }
  }
  void read_header(std::size_t rank) {
    check(big_endian(source_->read(4)) == 0x800 + static_cast<std::int64_t>(rank),
          "it does not start as an idx file of " + std::to_string(rank) +
              "-dimensional unsigned bytes does");
    const std::vector<std::byte> header = source_->read(4 * rank);
    examples_ = big_endian(std::span(header).first(4));
    bytes_ = examples_;
    for (std::size_t axis = 1; axis < rank; ++axis) {
      const std::int64_t dim = big_endian(std::span(header).subspan(4 * axis, 4));
      check(dim == side, "its images are not 28 x 28");
      bytes_ *= dim;
    }
    check(bytes_ > 0, "it holds no examples");
    check(static_cast<std::uint64_t>(bytes_) <= largest_set,
          "it promises " + std::to_string(examples_) + " examples of together " +
              std::to_string(bytes_) + " bytes; at most 1 GiB is read");
  }

  fs::path path_;
  std::optional<Source> source_;
  std::int64_t examples_ = 0, bytes_ = 0;
};

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
  IdxFile images(image_path, 3), labels(label_path, 1);
  check(images.examples() == labels.examples(),
        image_path.string() + " holds " + std::to_string(images.examples()) + " images, but " +
            label_path.string() + " " + std::to_string(labels.examples()) + " labels");
  std::vector<std::byte> all_labels = labels.elements();
  for (const std::byte label : all_labels) {
    check(static_cast<int>(label) < classes_of_mnist, label_path.string() + ": label " +
                                                          std::to_string(static_cast<int>(label)) +
                                                          " is none of 0 to 9");
  }
  return std::make_unique<Mnist>(images.elements(), std::move(all_labels));
}

}  // namespace cnn::data
