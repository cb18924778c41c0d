#include <filesystem>
#include <utility>

#include "data/catalog.h"
#include "data/file.h"
#include "data/imagenet/image_files.h"
#include "data/imagenet/source.h"
#include "data/records/record.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;

class Folders final : public ImageSource {
 public:
  explicit Folders(ImageFolder folder) : folder_(std::move(folder)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(folder_.files.size()); }
  std::span<const std::byte> read(std::int64_t index,
                                  std::vector<std::byte>& buffer) const override {
    const InputFile file(path(index));
    if (file.size() > largest_record) {
      throw BrokenRecord(file.path().string() +
                         " has more than 1 GiB; leave it out with --skip_broken_records");
    }
    if (buffer.size() < file.size()) {
      buffer.resize(file.size());
    }
    const std::span<std::byte> bytes = std::span(buffer).first(file.size());
    file.read(0, bytes);
    return bytes;
  }
  ImageExample parse(std::int64_t index, std::span<const std::byte> bytes) const override {
    const ImageFile& file = folder_.files[static_cast<std::size_t>(index)];
    return {.encoded = bytes, .label = folder_.classes[file.folder].label, .boxes = {}};
  }
  std::string where(std::int64_t index) const override {
    return path(index).string() + ": the image";
  }
  std::uint64_t bytes() const override { return 0; }

 private:
  fs::path path(std::int64_t index) const {
    return folder_.path(folder_.files[static_cast<std::size_t>(index)]);
  }

  ImageFolder folder_;
};

}  // namespace

std::unique_ptr<ImageSource> open_folders(const Options& options) {
  return std::make_unique<Folders>(list_image_folder(image_folder_of(options.dir, options.training),
                                                     options.images.class_list,
                                                     find("imagenet").classes - 1));
}

}  // namespace cnn::data
