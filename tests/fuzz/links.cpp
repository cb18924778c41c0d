// libFuzzer target that reads files of --comm_calibration_file.
#include "bench/ranks/exchange.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const cnn::fuzz::MemoryFile file;
  file.fill({data, size});
  cnn::fuzz::survive([&] { cnn::bench::read_links(file.path()); });
  return 0;
}
