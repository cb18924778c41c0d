#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/grid/grid.h"

namespace cnn::tests::grid {

// When a thread did something: between which barriers of its block, and after how many barriers of
// its warp.
struct Moment {
  std::uint32_t thread = 0;
  std::uint32_t interval = 0;  // barriers of the block before it
  std::uint32_t clock = 0;     // barriers of its warp before it
  bool operator==(const Moment&) const = default;
};

// The knowledge of one thread about the others of its warp: of lane i, everything before clock[i].
using WarpClock = std::array<std::uint32_t, warp_size>;

// Returns whether two moments of one block are ordered, `then` in the order of execution before
// `now`: a barrier of the block lies between, or the same thread did both, or barriers of one warp
// order them. `known` is the clock of the later thread.
bool is_ordered(const Moment& then, const Moment& now, const WarpClock& known);

// The shared memory of one block, and who touched each byte last.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes), cells_(bytes) {}

  void reset();  // poisons all bytes: NaN in every real type
  std::size_t size() const { return bytes_.size(); }
  bool contains(const std::byte* at) const {
    return at >= bytes_.data() && at < bytes_.data() + bytes_.size();
  }

  // Where the element lies, noting the access. Throws Error if it races with an earlier one or
  // reads what no thread wrote. `known` is the clock of the thread itself.
  std::byte* touch(const SharedArray& array, std::int64_t index, Access access, const Moment& now,
                   const WarpClock& known);

 private:
  struct Note {
    Moment moment;
    bool made = false;
    bool atomic = false;
  };
  struct Cell {
    std::uint32_t block = 0;  // whose notes these are; those of an earlier block count for nothing
    Note writer;
    // The last reader, and the last one that was another thread: a write must follow both.
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
  std::uint32_t block_ = 0;  // blocks so far
  std::vector<Cell> cells_;  // one for each byte
};

// "thread (3, 0, 0)", of the launch's block shape.
std::string thread_name(std::size_t thread);
std::string_view verb(Access access);  // "reads"

}  // namespace cnn::tests::grid
