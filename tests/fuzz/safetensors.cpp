// libFuzzer target that reads safetensors files alone, as a checkpoint and as a data set.
#include "data/safetensors.h"

#include <vector>

#include "data/catalog.h"
#include "data/checkpoint.h"
#include "tests/fuzz/fuzz.h"

namespace {

using cnn::data::SafetensorsFile;

void read_all(const std::string& path) {
  const SafetensorsFile file(path);
  for (const auto& [name, entry] : file.entries()) {
    // The file contains the entry's bytes, so its size bounds this memory.
    std::vector<float> values(static_cast<std::size_t>(entry.tensor.shape.elements()));
    file.read_f32(entry, values);
  }
}

void load_checkpoint(const std::string& path) {
  const std::vector<cnn::data::NamedTensor> wanted{
      {.name = "v/cg/w", .shape = {2, 3}},
      {.name = "v/cg/w/Momentum", .shape = {2, 3}, .required = false}};
  cnn::data::load(path, wanted, [](std::size_t index, std::span<const float> values) {
    if (index > 1 || values.size() != 6) {
      __builtin_trap();
    }
  });
}

void read_examples(const std::string& path) {
  const auto set = cnn::data::open_tensors({.dir = path, .classes = 10});
  std::vector<std::byte> image(set->format().bytes());
  std::int32_t label = 0;
  set->read(set->size() - 1, {.image = image, .label = &label});
  if (label < 0 || label >= set->classes()) {
    __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const cnn::fuzz::MemoryFile file;
  file.fill({data, size});
  cnn::fuzz::survive([] {
    read_all(file.path());  // the others refuse a header that this one refuses
    cnn::fuzz::survive([] { load_checkpoint(file.path()); });
    cnn::fuzz::survive([] { read_examples(file.path()); });
  });
  return 0;
}
