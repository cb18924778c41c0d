#include "bench/machine/processors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layers/cpu/threads.h"
#include "runtime/cpu/cpu_mask.h"
#include "runtime/error.h"

namespace cnn::bench {

std::vector<int> usable_processors() { return layers::cpu::affinity_cpus(); }

std::vector<int> part_of(std::span<const int> processors, int part, int parts) {
  const auto count = static_cast<int>(processors.size());
  const int begin = count < parts ? part % count : count * part / parts;
  const int end = count < parts ? begin + 1 : count * (part + 1) / parts;
  const auto mine =
      processors.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  return {mine.begin(), mine.end()};
}

void stay_on(std::span<const int> processors) {
  if (layers::cpu::user_binds_threads()) {
    return;
  }
  CpuMask mask;
  for (const int processor : processors) {
    mask.add(processor);
  }
  if (!mask.bind()) {
    throw Error(
        fmt::format("a rank cannot be bound to its processors {}", fmt::join(processors, ",")));
  }
}

}  // namespace cnn::bench
