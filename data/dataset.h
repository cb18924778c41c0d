#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

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

// Changes an image on its way from the data set to a batch; both have the format of the data set
// and do not overlap. `position` counts the examples since global step 0, so that a resumed run
// draws what an uninterrupted one would. Called by many threads at once.
using Transform = std::function<void(std::span<const std::byte> from, std::span<std::byte> to,
                                     std::int64_t position)>;

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;  // examples, at least 1
  virtual ImageFormat format() const = 0;
  virtual int classes() const = 0;  // every label is in [0, classes)
  // Fills the image and label of example `index`, in [0, size). Any thread, any order.
  virtual void read(std::int64_t index, const Example& into) const = 0;
  // False: always in file order, in training too.
  virtual bool may_shuffle() const { return true; }
  // Returns what --distortions does to a training image; empty: nothing.
  virtual Transform distortions(std::uint64_t /*seed*/) const { return {}; }
};

struct Options {
  std::string dir;            // --data_dir; for `tensors` a file
  bool training = true;       // else the validation examples
  bool repeat_first = false;  // --datasets_repeat_cached_sample: every example is the first one
  int classes = 1001;  // that the labels of `tensors` tell apart; other data sets know theirs
};

}  // namespace cnn::data
