// libFuzzer target that reads MNIST's idx files, plain and compressed. The input's first byte
// selects the images or the labels; the other file is valid.
#include <array>
#include <vector>

#include "data/catalog.h"
#include "tests/fuzz/fuzz.h"

namespace {

using cnn::fuzz::MemoryFile;

std::vector<std::uint8_t> labels_of_two() { return {0, 0, 8, 1, 0, 0, 0, 2, 3, 9}; }

std::vector<std::uint8_t> images_of_two() {
  std::vector<std::uint8_t> bytes{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28};
  bytes.resize(bytes.size() + std::size_t{2} * 28 * 28, 7);
  return bytes;
}

// A folder of one file of hostile bytes and one as it should be.
class Set {
 public:
  Set(bool labels, bool packed)
      : whole_(labels ? images_of_two() : labels_of_two()),
        folder_({{std::string("t10k-images-idx3-ubyte") + (labels || !packed ? "" : ".gz"),
                  labels ? &whole_ : &fuzzed_},
                 {std::string("t10k-labels-idx1-ubyte") + (labels && packed ? ".gz" : ""),
                  labels ? &fuzzed_ : &whole_}}) {}

  void read_all(std::span<const std::uint8_t> bytes) const {
    fuzzed_.fill(bytes);
    const auto set = cnn::data::open_mnist({.dir = folder_.path(), .training = false});
    std::vector<std::byte> image(set->format().bytes());
    std::int32_t label = 0;
    for (std::int64_t i = 0; i < set->size(); ++i) {
      set->read(i, {.image = image, .label = &label});
      if (label < 0 || label >= set->classes()) {
        __builtin_trap();
      }
    }
  }

 private:
  MemoryFile fuzzed_, whole_;
  cnn::fuzz::MemoryFolder folder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array<Set, 4> sets{Set(false, false), Set(true, false), Set(false, true),
                                       Set(true, true)};
  if (size > 0) {
    const Set& set = sets.at(data[0] % sets.size());
    cnn::fuzz::survive([&] { set.read_all(std::span(data, size).subspan(1)); });
  }
  return 0;
}
