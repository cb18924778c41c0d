// libFuzzer target: the index of a folder of checkpoints, the text file `checkpoint`. The folder
// has one checkpoint that it may name.
#include "data/checkpoint.h"

#include <filesystem>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const cnn::fuzz::MemoryFile index, checkpoint;
  static const cnn::fuzz::MemoryFolder folder(
      {{"checkpoint", &index}, {"model.ckpt-7.safetensors", &checkpoint}});
  index.fill({data, size});
  cnn::fuzz::survive([] {
    const auto newest = cnn::data::find_newest(folder.path());
    if (!newest || !std::filesystem::is_regular_file(*newest)) {
      __builtin_trap();
    }
  });
  return 0;
}
