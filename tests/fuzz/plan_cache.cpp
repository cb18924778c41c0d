// libFuzzer target that reads files of --plan_cache.
#include "layers/cuda/cudnn/plan_cache.h"

#include "layers/cuda/cudnn/choice_text.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cnn::layers::cuda;
  static const PlanCache::Owner owner{.device = "NVIDIA H200", .cudnn_version = 91900};
  static const cnn::fuzz::MemoryFile file;
  file.fill({data, size});
  cnn::fuzz::survive([&] {
    const PlanCache cache(file.path(), owner, false);
    for (const char* key : {"forward f16", "node 3", ""}) {
      const auto entry = cache.find(key);
      Choice again;
      if (entry &&
          !(read_choice_fields(choice_fields(entry->choice), again) && again == entry->choice)) {
        __builtin_trap();
      }
    }
  });
  return 0;
}
