#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/records/image_example.h"

namespace cnn::data {

// Random access to encoded images in any storage. Thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual std::int64_t size() const = 0;
  // Reads an example and returns its bytes, in `buffer` or in the source's memory. Throws
  // BrokenRecord if they are damaged, Error if the file cannot be read.
  virtual std::span<const std::byte> read(std::int64_t index,
                                          std::vector<std::byte>& buffer) const = 0;
  // Parses a record that read() returned; the result has views into it. Throws Error without a file
  // name.
  virtual ImageExample parse(std::int64_t index, std::span<const std::byte> bytes) const = 0;
  // Returns the file of an example and its place there, for messages.
  virtual std::string where(std::int64_t index) const = 0;
  virtual std::uint64_t bytes() const = 0;  // of all examples; 0 if unknown
  virtual bool likes_runs() const { return false; }
  virtual void read_ahead(std::int64_t /*first*/, std::int64_t /*count*/) const {}
  virtual std::vector<std::string> notices() const { return {}; }
};

// Opens TFRecord shards train-*-of-* and validation-*-of-*.
bool has_shards(const Options& options);
std::unique_ptr<ImageSource> open_shards(const Options& options);

// Opens folders train/<class>/ and val/<class>/ of image files.
std::unique_ptr<ImageSource> open_folders(const Options& options);

// Returns a decorator that caches read examples in memory: --datasets_use_caching.
std::unique_ptr<ImageSource> cached(std::unique_ptr<ImageSource> source);
// Returns a decorator that returns the first example for every index:
// --datasets_repeat_cached_sample.
std::unique_ptr<ImageSource> repeated(std::unique_ptr<ImageSource> source);

}  // namespace cnn::data
