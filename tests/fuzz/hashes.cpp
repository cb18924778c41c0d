// libFuzzer target that compares a file of --hash_file with itself.
#include "bench/compare/bits.h"
#include "bench/compare/hashed_run.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cnn::compare;
  static const cnn::fuzz::MemoryFile file;
  file.fill({data, size});
  cnn::fuzz::survive([&] {
    const HashedRun run = read_hashes(file.path());
    static_cast<void>(bits_text(run, run, compare_bits(run, run)));
  });
  return 0;
}
