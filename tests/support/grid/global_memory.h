#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tests/support/grid/shared_memory.h"

namespace cnn::tests::grid {

// A thread of the launch at one moment.
struct GlobalMoment {
  std::uint32_t block = 0;
  Moment moment;
  bool operator==(const GlobalMoment&) const = default;
};

// Records which thread touched each byte of the device's memory in one launch. Nothing orders two
// blocks of a launch, and only barriers the threads of one: all else that meets in a byte, and is
// not all reads, is a race.
class GlobalMemory {
 public:
  // An earlier access that races with this one.
  struct Race {
    GlobalMoment earlier;
    bool wrote = false;
  };

  // Notes an access to bytes that are neither a thread's own stack nor shared memory, and looks for
  // what it races with: nullptr if nothing. `known` is the clock of the thread itself.
  const Race* touch(const std::byte* at, std::size_t bytes, Access access, const GlobalMoment& now,
                    const WarpClock& known);

 private:
  using Id = std::uint32_t;  // place in moments_, plus one; 0: nobody
  struct Cell {
    Id writer = 0;
    bool atomic = false;  // so did the writer
    // The last reader of the last block that read, the last one that was another thread of it, and
    // one of another block.
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

// Whether any access was seen by this thread of the program: else what runs was compiled without
// the compiler's hooks, and races in global memory go unseen.
bool sees_global_memory();

}  // namespace cnn::tests::grid
