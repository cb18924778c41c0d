// libFuzzer target that reads pickles alone and as batches of CIFAR-10.
#include "data/pickle.h"

#include <vector>

#include "data/catalog.h"
#include "tests/fuzz/fuzz.h"

namespace {

using cnn::data::Pickle;
using cnn::data::PickleValue;

// Visits every value that is one or two steps away from the root.
void walk(const Pickle& pickle) {
  const PickleValue& root = pickle.root();
  for (const std::uint32_t item : root.items) {
    for (const std::uint32_t inner : pickle.at(item).items) {
      static_cast<void>(pickle.at(inner).text());
    }
  }
  if (root.kind == PickleValue::Kind::dict) {
    static_cast<void>(pickle.find(root, "data"));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  cnn::fuzz::survive([&] { walk(Pickle({bytes.begin(), bytes.end()})); });
  static const cnn::fuzz::MemoryFile file;
  static const cnn::fuzz::MemoryFolder folder({{"test_batch", &file}});
  file.fill({data, size});
  cnn::fuzz::survive([&] {
    const auto set = cnn::data::open_cifar10({.dir = folder.path(), .training = false});
    std::vector<std::byte> image(set->format().bytes());
    std::int32_t label = 0;
    set->read(set->size() - 1, {.image = image, .label = &label});
    if (label < 0 || label >= set->classes()) {
      __builtin_trap();
    }
  });
  return 0;
}
