// libFuzzer target: machine profiles of --simulate.
#include "bench/machine/profile.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cnn::fuzz::survive([&] {
    const cnn::bench::Profile profile =
        cnn::bench::read_profile(cnn::fuzz::text_of({data, size}), "fuzz.json");
    static_cast<void>(profile.flops(cnn::bench::Precision::fp16));
  });
  return 0;
}
