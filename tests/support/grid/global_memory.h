#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tests/support/grid/shared_memory.h"

namespace cnn::tests::grid {

// A thread of the launch at one point of its execution.
struct GlobalMoment {
  std::uint32_t block = 0;
  Moment moment;
  bool operator==(const GlobalMoment&) const = default;
};

// Detects races in a device's global memory within one launch, from the threads that touched each
// byte. Only barriers order the threads of a block, and nothing orders two blocks. Unordered
// accesses to one byte are a race unless all of them are reads.
class GlobalMemory {
 public:
  // An earlier access that races with the current one.
  struct Race {
    GlobalMoment earlier;
    bool wrote = false;
  };

  // Records an access to bytes outside the thread's stack and shared memory. Returns a race with
  // it, or nullptr. `known` is the thread's own clock.
  const Race* touch(const std::byte* at, std::size_t bytes, Access access, const GlobalMoment& now,
                    const WarpClock& known);

 private:
  using Id = std::uint32_t;  // index in moments_ plus one; 0 if none
  struct Cell {
    Id writer = 0;
    bool atomic = false;  // whether the write was atomic
    // The last reader, the last reader of the same block in another thread, and one reader of
    // another block.
    std::array<Id, 3> readers{};
  };
  static constexpr std::size_t line_bytes = 64;
  using Line = std::array<Cell, line_bytes>;

  Id id_of(const GlobalMoment& now);
  bool is_before(Id earlier, const GlobalMoment& now, const WarpClock& known) const;
  bool races(const Cell& cell, Access access, const GlobalMoment& now, const WarpClock& known);
  void note_reader(Cell& cell, Id id) const;
  Line& line_of(std::uintptr_t number);

  std::vector<GlobalMoment> moments_;
  std::unordered_map<std::uintptr_t, Line> lines_;  // by address / line_bytes
  std::uintptr_t last_number_ = 0;
  Line* last_line_ = nullptr;
  Race race_;
};

// Returns whether this thread of the program has seen any access. If not, the running code was
// compiled without the compiler's hooks, and races in global memory remain undetected.
bool sees_global_memory();

}  // namespace cnn::tests::grid
