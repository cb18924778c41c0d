#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "data/catalog.h"
#include "data/imagenet/preprocess.h"
#include "data/imagenet/source.h"
#include "data/records/record.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

using Clock = std::chrono::steady_clock;

// Consecutive broken examples after which the set is rejected as not containing images.
constexpr int max_broken_in_a_row = 1000;

struct Scratch {
  std::vector<std::byte> record;
  PreprocessScratch images;
};

// A pool of scratch buffers, as many as threads read concurrently.
class ScratchPool {
 public:
  std::unique_ptr<Scratch> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      return std::make_unique<Scratch>();
    }
    std::unique_ptr<Scratch> scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

class ImageNet final : public Dataset {
 public:
  ImageNet(std::unique_ptr<ImageSource> source, ImageOptions options, bool training)
      : source_(std::move(source)), options_(std::move(options)), training_(training) {}

  std::int64_t size() const override { return source_->size(); }
  ImageFormat format() const override { return {options_.side, options_.side, 3, DataType::f32}; }
  int classes() const override { return find("imagenet").classes; }
  void read(std::int64_t index, const Example& into) const override {
    read_for(index, {.position = index}, into);
  }
  void read_for(std::int64_t index, const Place& place, const Example& into) const override {
    std::unique_ptr<Scratch> scratch = pool_.take();
    for (int broken = 0;; ++broken) {
      try {
        read_one((index + broken) % size(), place, into, *scratch);
        break;
      } catch (const BrokenRecord& problem) {
        if (!options_.skip_broken) {
          throw;
        }
        ++skipped_;
        check(broken + 1 < std::min<std::int64_t>(max_broken_in_a_row, size()),
              std::to_string(broken + 1) +
                  " examples in a row are broken, more than --skip_broken_records leaves out; the "
                  "last one: " +
                  problem.what());
      }
    }
    pool_.give_back(std::move(scratch));
  }
  bool likes_runs() const override { return source_->likes_runs(); }
  void read_ahead(std::int64_t first, std::int64_t count) const override {
    source_->read_ahead(first, count);
  }
  std::vector<std::string> notices() const override { return source_->notices(); }
  InputStatistics statistics() const override {
    return {.examples = examples_,
            .skipped = skipped_,
            .bytes = bytes_,
            .read_seconds = 1e-9 * static_cast<double>(read_ns_),
            .decode_seconds = 1e-9 * static_cast<double>(decode_ns_),
            .resize_seconds = 1e-9 * static_cast<double>(resize_ns_)};
  }

 private:
  void read_one(std::int64_t index, const Place& place, const Example& into,
                Scratch& scratch) const {
    const Clock::time_point start = Clock::now();
    const std::span<const std::byte> bytes = source_->read(index, scratch.record);
    const std::chrono::nanoseconds reading = Clock::now() - start;
    const std::span<float> out(reinterpret_cast<float*>(into.image.data()),
                               into.image.size() / sizeof(float));
    PreprocessTimes times;
    try {
      const ImageExample example = source_->parse(index, bytes);
      check(example.label >= 0 && example.label < classes(),
            "its label " + std::to_string(example.label) + " is none of 0 to " +
                std::to_string(classes() - 1));
      times = preprocess({.file = example.encoded, .boxes = example.boxes, .place = place},
                         options_, training_, scratch.images, out);
      *into.label = static_cast<std::int32_t>(example.label);
    } catch (const Error& error) {
      throw BrokenRecord(source_->where(index) + " is broken: " + error.what() +
                         (options_.skip_broken
                              ? std::string()
                              : "; leave such examples out with --skip_broken_records"));
    }
    ++examples_;
    bytes_ += static_cast<std::int64_t>(bytes.size());
    read_ns_ += reading.count();
    decode_ns_ += times.decode_ns;
    resize_ns_ += times.resize_ns;
  }

  std::unique_ptr<ImageSource> source_;
  ImageOptions options_;
  bool training_;
  mutable ScratchPool pool_;
  mutable std::atomic<std::int64_t> examples_ = 0, skipped_ = 0, bytes_ = 0;
  mutable std::atomic<std::int64_t> read_ns_ = 0, decode_ns_ = 0, resize_ns_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> open_imagenet(const Options& options) {
  check(has_jpeg_codec(),
        "this program was built without libjpeg-turbo and reads no images; leave out --data_dir, "
        "or install it (scripts/setup.sh) and build again");
  std::unique_ptr<ImageSource> source =
      has_shards(options) ? open_shards(options) : open_folders(options);
  if (options.repeat_first) {
    source = repeated(std::move(source));
  } else if (options.images.cache) {
    source = cached(std::move(source));
  }
  return std::make_unique<ImageNet>(std::move(source), options.images, options.training);
}

}  // namespace cnn::data
