#include <system_error>
#include <utility>

#include "data/imagenet/open_files.h"
#include "data/imagenet/source.h"
#include "data/records/record.h"
#include "data/records/record_index.h"

namespace cnn::data {
namespace {

std::string subset_of(const Options& options) { return options.training ? "train" : "validation"; }

class Shards final : public ImageSource {
 public:
  explicit Shards(OpenedIndex opened)
      : index_(std::move(opened.index)),
        notices_(std::move(opened.notices)),
        files_(index_.shards().size()) {}

  std::int64_t size() const override { return index_.size(); }
  std::span<const std::byte> read(std::int64_t index,
                                  std::vector<std::byte>& buffer) const override {
    const RecordLocation place = index_[index];
    return read_record(*file(place), place.offset, place.bytes, buffer);
  }
  ImageExample parse(std::int64_t /*index*/, std::span<const std::byte> bytes) const override {
    return parse_image_example(bytes);
  }
  std::string where(std::int64_t index) const override {
    const RecordLocation place = index_[index];
    return index_.shards()[place.shard].path.string() + ": the record at byte " +
           std::to_string(place.offset);
  }
  std::uint64_t bytes() const override { return index_.bytes(); }
  bool likes_runs() const override { return true; }
  void read_ahead(std::int64_t first, std::int64_t count) const override {
    // Runs end with their shard: the next shard begins elsewhere on the disk.
    const RecordLocation begin = index_[first];
    std::uint64_t end = begin.offset;
    for (std::int64_t i = first; i < first + count && i < size(); ++i) {
      const RecordLocation place = index_[i];
      if (place.shard != begin.shard) {
        break;
      }
      end = place.offset + place.bytes + record_frame_bytes;
    }
    file(begin)->read_ahead(begin.offset, end - begin.offset);
  }
  std::vector<std::string> notices() const override { return notices_; }

 private:
  std::shared_ptr<const InputFile> file(const RecordLocation& place) const {
    return files_.get(place.shard, index_.shards()[place.shard].path);
  }

  RecordIndex index_;
  std::vector<std::string> notices_;
  OpenFiles files_;
};

}  // namespace

bool has_shards(const Options& options) {
  return has_record_shards({.dir = options.dir, .subset = subset_of(options)});
}

std::unique_ptr<ImageSource> open_shards(const Options& options) {
  return std::make_unique<Shards>(open_record_index({.dir = options.dir,
                                                     .subset = subset_of(options),
                                                     .skip_broken = options.images.skip_broken}));
}

}  // namespace cnn::data
