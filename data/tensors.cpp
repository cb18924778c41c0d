#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "data/catalog.h"
#include "data/file.h"
#include "data/safetensors.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

using Entry = SafetensorsFile::Entry;

// Pre-processed examples, for numerical comparison with another framework: used unchanged, in file
// order. Labels stay in memory; images are read from the file on demand.
class Tensors final : public Dataset {
 public:
  Tensors(const std::filesystem::path& path, int classes) : file_(path), classes_(classes) {
    const Entry& images = entry("images");
    const Shape& shape = images.tensor.shape;
    check(images.tensor.type == StoredType::f32 && shape.rank() == 4,
          path.string() + ": images must be F32 [N, H, W, C]");
    for (const std::int64_t dim : shape) {
      check(dim > 0 && dim <= std::numeric_limits<int>::max(),
            path.string() + ": images have the shape " + to_string(shape));
    }
    format_ = {static_cast<int>(shape[1]), static_cast<int>(shape[2]), static_cast<int>(shape[3]),
               DataType::f32};
    images_ = &images;
    read_labels(entry("labels"), shape[0]);
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  ImageFormat format() const override { return format_; }
  int classes() const override { return classes_; }
  bool may_shuffle() const override { return false; }
  void read(std::int64_t index, const Example& into) const override {
    const auto at = static_cast<std::size_t>(index);
    file_.read(*images_, at * format_.bytes(), into.image.first(format_.bytes()));
    *into.label = labels_[at];
  }

 private:
  const Entry& entry(std::string_view name) const {
    const Entry* found = file_.find(name);
    check(found != nullptr, file_.path().string() + " has no tensor '" + std::string(name) + "'");
    return *found;
  }

  void read_labels(const Entry& labels, std::int64_t count) {
    const std::string where = file_.path().string() + ": ";
    const StoredType type = labels.tensor.type;
    check(
        (type == StoredType::i32 || type == StoredType::i64) && labels.tensor.shape == Shape{count},
        where + "labels must be I32 or I64 [" + std::to_string(count) + "], one for each image");
    std::vector<std::byte> bytes(labels.bytes);
    file_.read(labels, 0, bytes);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t label = type == StoredType::i32 ? element<std::int32_t>(bytes, i)
                                                         : element<std::int64_t>(bytes, i);
      if (label < 0 || label >= classes_) {
        throw Error(where + "label " + std::to_string(label) + " of image " + std::to_string(i) +
                    " is not in 0 to " + std::to_string(classes_ - 1));
      }
      labels_.push_back(static_cast<std::int32_t>(label));
    }
  }

  template <class T>
  static T element(std::span<const std::byte> bytes, std::int64_t index) {
    T value{};
    std::memcpy(&value, bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }

  SafetensorsFile file_;
  int classes_;
  ImageFormat format_;
  const Entry* images_ = nullptr;
  std::vector<std::int32_t> labels_;
};

}  // namespace

std::unique_ptr<Dataset> open_tensors(const Options& options) {
  return std::make_unique<Tensors>(options.dir, options.classes);
}

}  // namespace cnn::data
