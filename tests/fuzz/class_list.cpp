// libFuzzer target: files of --class_list, for a folder of four classes.
#include <filesystem>
#include <fstream>
#include <set>

#include "data/imagenet/image_files.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr int max_classes = 1000;

void make_classes(const std::filesystem::path& root) {
  for (const char* name : {"a", "b c", "n01440764", "zebra"}) {
    std::filesystem::create_directory(root / name);
    std::ofstream(root / name / "x.jpg") << "an image";
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const cnn::fuzz::MemoryFolder folder;
  static const bool made = (make_classes(folder.path()), true);
  const cnn::fuzz::MemoryFile file(std::span(data, size));
  cnn::fuzz::survive([&] {
    std::set<std::int32_t> labels;
    for (const auto& one :
         cnn::data::list_image_folder(folder.path(), file.path(), max_classes).classes) {
      if (one.label < 1 || one.label > max_classes || !labels.insert(one.label).second) {
        __builtin_trap();
      }
    }
  });
  return made ? 0 : -1;
}
