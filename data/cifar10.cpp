#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "data/augment.h"
#include "data/catalog.h"
#include "data/file.h"
#include "data/pickle.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;

constexpr ImageFormat image_format{32, 32, 3, DataType::u8};
constexpr std::size_t plane = 1024;
constexpr std::size_t image_bytes = 3 * plane;
constexpr int largest_label = 9;
constexpr int training_files = 5;
constexpr std::uint64_t largest_file = std::uint64_t{1} << 30;  // upstream's have 31 MB

struct Examples {
  std::vector<std::byte> images;  // channels innermost
  std::vector<std::int32_t> labels;
};

// Both file formats store an image as its red, green and blue plane; `step` is the distance between
// pixels.
void append(Examples& examples, std::int64_t label, const std::byte* image, std::size_t step) {
  check(label >= 0 && label <= largest_label,
        "label " + std::to_string(label) + " is none of 0 to 9");
  examples.labels.push_back(static_cast<std::int32_t>(label));
  for (std::size_t pixel = 0; pixel < plane; ++pixel) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      examples.images.push_back(image[(channel * plane + pixel) * step]);
    }
  }
}

// Appends records of a label byte and an image.
void append_binary(const fs::path& path, Examples& examples) {
  constexpr std::size_t record = 1 + image_bytes;
  const std::vector<std::byte> bytes = read_whole(path);
  check(!bytes.empty() && bytes.size() % record == 0,
        "its " + std::to_string(bytes.size()) + " bytes are not whole records of 3073");
  for (std::size_t at = 0; at < bytes.size(); at += record) {
    append(examples, static_cast<int>(bytes[at]), bytes.data() + at + 1, 1);
  }
}

// The layout of pixels in the value of `data`: N x 3072 as an array of unsigned bytes, or plain
// bytes.
struct Pixels {
  std::span<const std::byte> bytes;
  std::size_t count = 0;
  bool fortran = false;
};

Pixels pixels_of(const PickleValue* data) {
  using Kind = PickleValue::Kind;
  check(data != nullptr, "it is no dictionary with the key 'data'");
  Pixels pixels{data->bytes, data->bytes.size() / image_bytes, data->fortran};
  if (data->kind == Kind::array) {
    check(data->element_type == "u1" && data->shape.size() == 2 &&
              data->shape[1] == static_cast<std::int64_t>(image_bytes),
          "its 'data' is no array of unsigned bytes, N x 3072");
  } else {
    check(data->kind == Kind::text && data->bytes.size() % image_bytes == 0,
          "its 'data' is neither an array nor bytes of whole images");
  }
  check(pixels.count > 0, "it holds no images");
  return pixels;
}

void append_pickle(const fs::path& path, Examples& examples) {
  const Pickle pickle(read_whole(path));
  const Pixels pixels = pixels_of(pickle.find(pickle.root(), "data"));
  const PickleValue* labels = pickle.find(pickle.root(), "labels");
  check(labels != nullptr && labels->kind == PickleValue::Kind::list,
        "it is no dictionary with a list 'labels'");
  check(labels->items.size() == pixels.count, "it has " + std::to_string(pixels.count) +
                                                  " images but " +
                                                  std::to_string(labels->items.size()) + " labels");
  for (std::size_t i = 0; i < pixels.count; ++i) {
    const PickleValue& label = pickle.at(labels->items[i]);
    check(label.kind == PickleValue::Kind::integer, "a label is no integer");
    const std::byte* image = pixels.bytes.data() + i * (pixels.fortran ? 1 : image_bytes);
    append(examples, label.integer, image, pixels.fortran ? pixels.count : 1);
  }
}

void append_file(const fs::path& path, Examples& examples) {
  try {
    check(InputFile(path).size() <= largest_file, "it is larger than 1 GiB");
    path.extension() == ".bin" ? append_binary(path, examples) : append_pickle(path, examples);
  } catch (const Error& error) {
    throw Error("cannot use " + path.string() + ": " + error.what());
  }
}

// Returns the file under either name; empty if there is none. The binary format loads faster.
fs::path find_file(const fs::path& dir, const std::string& name) {
  for (const char* extension : {".bin", ""}) {
    fs::path path = dir / (name + extension);
    if (std::error_code ignored; fs::exists(path, ignored)) {
      return path;
    }
  }
  return {};
}

std::vector<fs::path> find_files(const Options& options) {
  if (!options.training) {
    return {find_file(options.dir, "test_batch")};
  }
  std::vector<fs::path> paths;
  for (int number = 1; number <= training_files; ++number) {
    paths.push_back(find_file(options.dir, "data_batch_" + std::to_string(number)));
  }
  // Part of the set is useful for trials, but a gap in it is a failed download.
  while (paths.size() > 1 && paths.back().empty()) {
    paths.pop_back();
  }
  return paths;
}

// The archive of the data set unpacks into this folder.
constexpr const char* unpacked_folder = "cifar-10-batches-py";

[[noreturn]] void refuse_missing(const std::string& name, const fs::path& dir) {
  std::string advice;
  if (std::error_code ignored; fs::is_directory(dir / unpacked_folder, ignored)) {
    advice = "; use --data_dir=" + (dir / unpacked_folder).string();
  } else if (fs::is_regular_file(dir, ignored)) {
    advice = ", which is a file; unpack it if it is an archive, and name the folder";
  }
  throw Error("there is no file " + name + " or " + name + ".bin in " + dir.string() + advice);
}

class Cifar10 final : public Dataset {
 public:
  explicit Cifar10(Examples examples) : examples_(std::move(examples)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(examples_.labels.size()); }
  ImageFormat format() const override { return image_format; }
  int classes() const override { return find("cifar10").classes; }
  void read(std::int64_t index, const Example& into) const override {
    const auto at = static_cast<std::size_t>(index);
    std::memcpy(into.image.data(), examples_.images.data() + at * image_bytes, image_bytes);
    *into.label = examples_.labels[at];
  }
  Transform distortions(std::uint64_t seed) const override {
    return crop_and_flip(image_format, 4, seed);
  }

 private:
  Examples examples_;
};

}  // namespace

std::unique_ptr<Dataset> open_cifar10(const Options& options) {
  const std::vector<fs::path> paths = find_files(options);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty()) {
      refuse_missing(options.training ? "data_batch_" + std::to_string(i + 1) : "test_batch",
                     options.dir);
    }
  }
  Examples examples;
  for (const fs::path& path : paths) {
    append_file(path, examples);
  }
  return std::make_unique<Cifar10>(std::move(examples));
}

}  // namespace cnn::data
