#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace cnn::data {

// The format of the images of a data set: height x width x channels, channels innermost (HWC).
struct ImageFormat {
  int height = 0, width = 0, channels = 0;
  DataType type = DataType::u8;  // or f32

  std::size_t bytes() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels) * size_of(type);
  }
  bool operator==(const ImageFormat&) const = default;
};

// The destination of one example. The memory belongs to the caller.
struct Example {
  std::span<std::byte> image;  // ImageFormat::bytes()
  std::int32_t* label = nullptr;
};

// The place of an example in the sequence that training reads.
struct Place {
  std::int64_t position = 0;  // in the endless sequence; see Transform
  std::int64_t in_batch = 0;  // in the batch of all ranks together
};

// Changes an image on its way from the data set to a batch; both have the format of the data set
// and do not overlap. `position` counts the examples since global step 0, so that a resumed run
// draws what an uninterrupted one would. Called by many threads at once.
using Transform = std::function<void(std::span<const std::byte> from, std::span<std::byte> to,
                                     std::int64_t position)>;

// The time and bytes of reading so far, summed over all threads. All are 0 for data sets in memory.
struct InputStatistics {
  std::int64_t examples = 0, skipped = 0, bytes = 0;  // skipped: broken ones; bytes: encoded
  double read_seconds = 0, decode_seconds = 0, resize_seconds = 0;
};

// A data set with random access to its examples. Many threads may read at once, in any order.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;  // examples, at least 1
  virtual ImageFormat format() const = 0;
  virtual int classes() const = 0;  // every label is in [0, classes)
  // Reads the image and label of example `index`, in [0, size). Throws Error if it cannot be read.
  virtual void read(std::int64_t index, const Example& into) const = 0;
  // Reads an example of a data set whose images also depend on their place: random crops,
  // alternating resize methods.
  virtual void read_for(std::int64_t index, const Place& /*place*/, const Example& into) const {
    read(index, into);
  }
  // Returns whether examples with neighbouring indices are adjacent on disk, so that sequential
  // reads are faster. Large sets are then shuffled in windows.
  virtual bool likes_runs() const { return false; }
  // A hint that `count` examples from `first` on will be read soon; returns at once.
  virtual void read_ahead(std::int64_t /*first*/, std::int64_t /*count*/) const {}
  // Returns whether training may shuffle; false: examples always come in file order.
  virtual bool may_shuffle() const { return true; }
  // Returns lines that tell the user about the files.
  virtual std::vector<std::string> notices() const { return {}; }
  virtual InputStatistics statistics() const { return {}; }
  // Returns the transform of --distortions for training images; empty: there is none.
  virtual Transform distortions(std::uint64_t /*seed*/) const { return {}; }
};

enum class ResizeChoice : std::uint8_t { nearest, bilinear, bicubic, area, round_robin };
enum class Preprocessor : std::uint8_t { standard, official_models };

// Options of the preprocessing of image files.
struct ImageOptions {
  int side = 224;          // in colour too, for training images
  std::uint64_t seed = 0;  // of random crops, flips and colours
  ResizeChoice resize = ResizeChoice::bilinear;
  Preprocessor preprocessor = Preprocessor::standard;
  bool distortions = false;    // colours of training images too
  bool colours_in_yiq = true;  // otherwise in HSV
  bool ml_perf = false;  // no bounding boxes; subtracts channel means instead of scaling to [-1, 1]
  bool decode_crop_only = true;  // --fuse_decode_and_crop
  bool skip_broken = false;      // --skip_broken_records
  bool cache = false;            // --datasets_use_caching
  std::string class_list;        // a file of folder names, one for each label; empty: sorted
};

struct Options {
  std::string dir;            // --data_dir; for `tensors` a file
  bool training = true;       // otherwise the validation examples
  bool repeat_first = false;  // --datasets_repeat_cached_sample: every example is the first one
  int classes = 1001;         // of `tensors`; other data sets define theirs
  ImageOptions images{};
};

}  // namespace cnn::data
