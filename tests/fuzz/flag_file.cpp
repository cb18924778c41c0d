// libFuzzer target: files of --flagfile, up to the words that they stand for; the target flags
// parses such words.
#include <array>
#include <string>
#include <string_view>

#include "bench/flags/flag_syntax.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const cnn::fuzz::MemoryFile file;
  static const std::string itself = file.path();
  std::string text = cnn::fuzz::text_of({data, size});
  // A file may name itself, by "flagfile=."; no other one is read.
  constexpr std::string_view name = "flagfile=.";
  for (std::size_t at = 0; (at = text.find("flagfile", at)) != text.npos;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    text.replace(at, end - at,
                 text.compare(at, name.size(), name) == 0 ? "flagfile=" + itself : "");
  }
  file.fill({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  cnn::fuzz::survive([] {
    for (const std::string& word :
         cnn::bench::expand_flag_files(std::array{"--flagfile=" + itself})) {
      if (word.find('\n') != word.npos) {
        __builtin_trap();
      }
    }
  });
  return 0;
}
