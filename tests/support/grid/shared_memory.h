#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/grid/grid.h"

namespace cnn::tests::grid {

// The time of a thread's action, in barriers of its block and of its warp.
struct Moment {
  std::uint32_t thread = 0;
  std::uint32_t interval = 0;  // number of earlier barriers of the block
  std::uint32_t clock = 0;     // number of earlier barriers of its warp
  bool operator==(const Moment&) const = default;
};

// A thread's vector clock over the lanes of its warp: it knows all actions of lane i before
// clock[i].
using WarpClock = std::array<std::uint32_t, warp_size>;

// Returns whether `then` happened before `now` in one block. This holds for actions of the same
// thread, across a barrier of the block, and across barriers of a warp. `known` is the vector clock
// of the later thread.
bool is_ordered(const Moment& then, const Moment& now, const WarpClock& known);

// The shared memory of one block, with the last accesses to each byte.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes), cells_(bytes) {}

  void reset();  // poisons all bytes, which makes every floating-point value NaN
  std::size_t size() const { return bytes_.size(); }
  bool contains(const std::byte* at) const {
    return at >= bytes_.data() && at < bytes_.data() + bytes_.size();
  }

  // Returns the element's address and records the access. Throws Error if it races with an earlier
  // access or reads unwritten bytes. `known` is the thread's own vector clock.
  std::byte* touch(const SharedArray& array, std::int64_t index, Access access, const Moment& now,
                   const WarpClock& known);

 private:
  struct Note {
    Moment moment;
    bool made = false;
    bool atomic = false;
  };
  struct Cell {
    // The block of these records; records of an earlier block do not count.
    std::uint32_t block = 0;
    Note writer;
    // The last reader and the last reader in another thread; a write must follow both.
    std::array<Note, 2> readers;
  };
  struct Visit {
    const SharedArray& array;
    std::int64_t index;
    Access access;
    const Moment& now;
    const WarpClock& known;
  };

  static void check_cell(const Cell& cell, const Visit& visit);
  static void note(Cell& cell, const Visit& visit);

  std::vector<std::byte> bytes_;
  std::uint32_t block_ = 0;  // number of blocks so far
  std::vector<Cell> cells_;  // one cell per byte
};

// Returns a name such as "thread (3, 0, 0)" for the shape of the launch's blocks.
std::string thread_name(std::size_t thread);
std::string_view verb(Access access);  // such as "reads"

}  // namespace cnn::tests::grid
