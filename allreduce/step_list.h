#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

// The actions of one rank in an all-reduce, as data. Generators write such lists, verify() proves
// that those of all ranks together are right, predict() tells how long they take, and a
// Communicator runs them. All ranks have the same number of chunks; chunk c of one rank talks to
// chunk c of others.
namespace cnn::allreduce {

// Elements [begin, end) of the buffer that is reduced.
struct Range {
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool operator==(const Range&) const = default;
};

// How the contributions to an element are added. fast: as the algorithm likes, with the same bits
// on all ranks. rank: ((x0 + x1) + x2) + ... in each dimension of a grid. tree: pairwise in each
// dimension, split in the middle: the same bits for all grids whose sizes are powers of two.
enum class Order : std::uint8_t { fast, rank, tree };

// The type that messages carry. Sums are always made in f32.
enum class Wire : std::uint8_t { f32, bf16, f16 };

// Posts a message of this range of the own buffer; it may be read until the next Wait.
struct Send {
  int to = 0;
  Range range;
};
// Posts the receipt of the next message of that rank, which carries the same range. It is written
// over the range, or beside it: at this element of the scratch, in the wire's type.
struct Receive {
  int from = 0;
  Range range;
  std::optional<std::size_t> beside;
};
// Waits until what was posted earlier in this chunk is complete, on this rank's side.
struct Wait {};
// All ranks of a group have come here in this chunk.
struct Meet {
  std::uint32_t group = 0;  // of RankPlan::groups
};
// One operand of a sum: the own buffer's range, what was received beside it, or the range in the
// buffer of another rank whose memory is in sight.
struct Part {
  enum class At : std::uint8_t { own, beside, peer };
  At at = At::own;
  std::size_t where = 0;  // element of the scratch, or rank
};
// The range becomes the sum of these parts, added one after another or pairwise. With into: in the
// buffers of all ranks of that group, else in the own.
struct Sum {
  Range range;
  std::uint32_t first_part = 0, parts = 0;  // of RankPlan::parts
  std::optional<std::uint32_t> into;        // of RankPlan::groups
  bool pairwise = false;
  // Nothing is added any more: the result is multiplied by what makes a mean of it, then rounded to
  // what the wire can carry, so that all ranks get the same bits.
  bool last = false;
};
using Action = std::variant<Send, Receive, Wait, Meet, Sum>;

// Actions in order, beside those of other chunks. Ends when all it has posted is complete.
struct Chunk {
  std::vector<Action> actions;
  std::vector<std::size_t> after;  // chunks of this rank that end before this one starts
};

struct RankPlan {
  std::vector<Chunk> chunks;
  std::vector<Part> parts;
  std::vector<std::vector<int>> groups;  // of ranks, ascending
  std::size_t scratch = 0;               // elements
  Wire wire = Wire::f32;

  std::span<const Part> parts_of(const Sum& sum) const {
    return std::span(parts).subspan(sum.first_part, sum.parts);
  }
};

std::size_t size_of(Wire wire);  // bytes of an element

}  // namespace cnn::allreduce
