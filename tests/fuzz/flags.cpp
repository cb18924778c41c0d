// libFuzzer target that parses command lines, one word per line, and flag files.
#include "bench/flags/flags.h"

#include <sstream>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace {

using namespace cnn::bench;

void parse(const std::vector<std::string>& words) {
  const CommandLine line = parse_flags(words, {.bf16 = true, .launched = false});
  static_cast<void>(line.notices.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = cnn::fuzz::text_of({data, size});
  std::vector<std::string> words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // Skips the flag that could read any file of the machine.
    if (line.find("flagfile") == line.npos) {
      words.push_back(line);
    }
  }
  cnn::fuzz::survive([&] { parse(words); });
  if (text.find("flagfile") == text.npos) {
    const cnn::fuzz::MemoryFile file(std::span(data, size));
    cnn::fuzz::survive([&] { parse({"--flagfile=" + file.path()}); });
  }
  return 0;
}
