// libFuzzer target that reads files of --history.
#include "bench/compare/history.h"

#include "bench/page/page.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cnn::compare;
  cnn::fuzz::survive([&] {
    History history = parse_history("fuzz", cnn::fuzz::text_of({data, size}));
    // A lower confidence takes 9 permutations instead of 499, whose code is the same, and fewer
    // runs.
    const Settings settings{.confidence = 0.5};
    const std::vector<Series> all = find_history(std::move(history.runs), settings, false);
    static_cast<void>(history_text(all, settings));
    static_cast<void>(history_json(all, settings));
    static_cast<void>(cnn::page::history_page(all, settings));
  });
  return 0;
}
