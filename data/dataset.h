#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace cnn::data {

// One image as it comes out of a data set: height x width x channels, channels innermost.
struct ImageFormat {
  int height = 0, width = 0, channels = 0;
  DataType type = DataType::u8;  // or f32

  std::size_t bytes() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels) * size_of(type);
  }
  bool operator==(const ImageFormat&) const = default;
};

// Where one example goes. The memory belongs to the caller.
struct Example {
  std::span<std::byte> image;  // ImageFormat::bytes()
  std::int32_t* label = nullptr;
};

// Where an example stands in what training reads.
struct Place {
  std::int64_t position = 0;  // in the endless sequence; see Transform
  std::int64_t in_batch = 0;  // in the batch of all ranks together
};

// Changes an image on its way from the data set to a batch; both have the format of the data set
// and do not overlap. `position` counts the examples since global step 0, so that a resumed run
// draws what an uninterrupted one would. Called by many threads at once.
using Transform = std::function<void(std::span<const std::byte> from, std::span<std::byte> to,
                                     std::int64_t position)>;

// Time and bytes that reading took so far, over all threads. All 0 for data sets that lie in
// memory.
struct InputStatistics {
  std::int64_t examples = 0, skipped = 0, bytes = 0;  // skipped: broken ones; bytes: encoded
  double read_seconds = 0, decode_seconds = 0, resize_seconds = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;  // examples, at least 1
  virtual ImageFormat format() const = 0;
  virtual int classes() const = 0;  // every label is in [0, classes)
  // Fills the image and label of example `index`, in [0, size). Any thread, any order.
  virtual void read(std::int64_t index, const Example& into) const = 0;
  // The same for a data set whose images also depend on where they stand: random crops, methods
  // that take turns.
  virtual void read_for(std::int64_t index, const Place& /*place*/, const Example& into) const {
    read(index, into);
  }
  // Examples of neighbouring indices lie beside each other on a disk, which reads them faster one
  // after the other: large sets are shuffled in windows then.
  virtual bool likes_runs() const { return false; }
  // Says that examples from `first` on will be read soon; returns at once.
  virtual void read_ahead(std::int64_t /*first*/, std::int64_t /*count*/) const {}
  // False: always in file order, in training too.
  virtual bool may_shuffle() const { return true; }
  // Returns lines that tell the user about the files.
  virtual std::vector<std::string> notices() const { return {}; }
  virtual InputStatistics statistics() const { return {}; }
  // Returns what --distortions does to a training image; empty: nothing.
  virtual Transform distortions(std::uint64_t /*seed*/) const { return {}; }
};

enum class ResizeChoice : std::uint8_t { nearest, bilinear, bicubic, area, round_robin };
enum class Preprocessor : std::uint8_t { standard, official_models };

// How image files become images of one size.
struct ImageOptions {
  int side = 224;          // of square images
  std::uint64_t seed = 0;  // of random crops, flips and colours
  ResizeChoice resize = ResizeChoice::bilinear;
  Preprocessor preprocessor = Preprocessor::standard;
  bool distortions = false;      // colours of training images too
  bool colours_in_yiq = true;    // else in HSV
  bool ml_perf = false;          // no boxes; channel means instead of [-1, 1]
  bool decode_crop_only = true;  // --fuse_decode_and_crop
  bool skip_broken = false;      // --skip_broken_records
  bool cache = false;            // --datasets_use_caching
  std::string class_list;        // a file of folder names, one for each label; empty: sorted
};

struct Options {
  std::string dir;            // --data_dir; for `tensors` a file
  bool training = true;       // else the validation examples
  bool repeat_first = false;  // --datasets_repeat_cached_sample: every example is the first one
  int classes = 1001;  // that the labels of `tensors` tell apart; other data sets know theirs
  ImageOptions images{};
};

}  // namespace cnn::data
