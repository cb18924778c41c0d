// libFuzzer target that parses command lines, one word per line.
#include "bench/flags/flags.h"

#include <sstream>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cnn::bench;
  std::vector<std::string> words;
  std::istringstream lines(cnn::fuzz::text_of({data, size}));
  for (std::string line; std::getline(lines, line);) {
    // Skips the flag that could read any file of the machine.
    if (line.find("flagfile") == line.npos) {
      words.push_back(line);
    }
  }
  cnn::fuzz::survive([&] {
    const CommandLine line = parse_flags(words, {.bf16 = true, .launched = false});
    static_cast<void>(line.notices.size());
  });
  return 0;
}
