#include "bench/machine/prefault.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>

#include "bench/flags/number_text.h"
#include "layers/cpu/parallel.h"
#include "runtime/cpu/memory.h"
#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t block = std::size_t{2} << 20U;  // a huge page
// Bytes between two checks of available memory.
constexpr std::size_t stretch = std::size_t{1} << 28U;
// Threads take blocks round-robin, so that pages spread evenly over NUMA nodes.
void touch(std::span<std::byte> memory) {
  const auto blocks = static_cast<std::int64_t>(divide_up(memory.size(), block));
  const std::int64_t threads = layers::cpu::team_size();
  layers::cpu::parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t thread = first; thread < last; ++thread) {
      for (std::int64_t b = thread; b < blocks; b += threads) {
        const std::size_t begin = static_cast<std::size_t>(b) * block;
        const std::size_t end = std::min(memory.size(), begin + block);
        for (std::size_t at = begin; at < end; at += page) {
          memory[at] = std::byte{0};
        }
        memory[end - 1] = std::byte{0};
      }
    }
  });
}

}  // namespace

std::size_t host_memory_available() { return available_memory(); }

void prefault(std::span<std::byte> memory, const std::function<std::size_t()>& available) {
  // Half of kept_free(): the rest of the program uses some of it.
  const std::size_t min_free = kept_free(std::max(available(), memory.size())) / 2;
  for (std::size_t done = 0; done < memory.size(); done += stretch) {
    const std::size_t next = std::min(stretch, memory.size() - done);
    const std::size_t left = available();
    if (left < next + min_free) {
      throw DoesNotFit(fmt::format(
          "{} were free when this run was planned, but others have taken memory since: of the last "
          "{} only {} are left; end other programs, or use a smaller batch",
          bytes_text(memory.size()), bytes_text(memory.size() - done), bytes_text(left)));
    }
    touch(memory.subspan(done, next));
  }
}

}  // namespace cnn::bench
