// libFuzzer target that reads machine profiles of --simulate.
#include "bench/machine/machine_model.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cnn::fuzz::survive([&] {
    const cnn::bench::MachineModel machine =
        cnn::bench::read_machine(cnn::fuzz::text_of({data, size}), "fuzz.json");
    static_cast<void>(machine.flops(cnn::bench::Precision::fp16));
  });
  return 0;
}
