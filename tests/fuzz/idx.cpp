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

void read_all(const cnn::fuzz::MemoryFolder& folder) {
  const auto set = cnn::data::open_mnist({.dir = folder.path(), .training = false});
  std::vector<std::byte> image(set->format().bytes());
  std::int32_t label = 0;
  for (std::int64_t i = 0; i < set->size(); ++i) {
    set->read(i, {.image = image, .label = &label});
    if (label < 0 || label >= set->classes()) {
      __builtin_trap();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const bool labels = (data[0] & 1U) != 0, packed = (data[0] & 2U) != 0;
  const MemoryFile fuzzed(std::span(data, size).subspan(1));
  const MemoryFile whole(labels ? images_of_two() : labels_of_two());
  static const cnn::fuzz::MemoryFolder folder;
  const std::string images_name = "t10k-images-idx3-ubyte", labels_name = "t10k-labels-idx1-ubyte";
  for (const char* ending : {"", ".gz"}) {
    folder.remove(images_name + ending);
    folder.remove(labels_name + ending);
  }
  const std::string ending = packed ? ".gz" : "";
  folder.link(images_name + (labels ? "" : ending), labels ? whole : fuzzed);
  folder.link(labels_name + (labels ? ending : ""), labels ? fuzzed : whole);
  cnn::fuzz::survive([&] { read_all(folder); });
  return 0;
}
