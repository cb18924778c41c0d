// libFuzzer target that reads files of --comm_calibration_file.
#include "bench/ranks/exchange.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const cnn::fuzz::MemoryFile file(std::span(data, size));
  cnn::fuzz::survive([&] { cnn::bench::read_links(file.path()); });
  return 0;
}
