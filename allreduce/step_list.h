#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

// The schedule of an all-reduce as data: for each rank a list of sends, receives, waits, barriers
// and sums. Generators write these lists, tests prove that the lists of all ranks together are
// correct, simulate() predicts their time, and Engine runs them over a Transport. All ranks have
// the same number of chunks, and chunk c of a rank only communicates with chunk c of other ranks.
namespace cnn::allreduce {

// Elements [begin, end) of the buffer that is reduced.
struct Range {
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool operator==(const Range&) const = default;
};

// The order in which the contributions to an element are added, which decides the bits of the sum.
// fast: any order of the algorithm, equal on all ranks. rank: ((x0 + x1) + x2) + ... in each
// dimension of a grid. tree: pairwise in each dimension, split in the middle, which yields the same
// bits for all grids whose sizes are powers of two, unless a 16-bit wire rounds in between.
enum class Order : std::uint8_t { fast, rank, tree };

// The type of the elements of messages. Sums are always computed in f32. With Order::fast a rank
// adds its own contribution as it is, and those of other ranks as messages have rounded them. In
// the other orders each addition rounds all of its operands, so that the bits of a sum do not
// depend on which rank adds, nor on whether its contributions come by messages or lie in shared
// memory.
enum class Wire : std::uint8_t { f32, bf16, f16 };

// Posts a send of this range of the rank's buffer, which must not change until the next Wait.
struct Send {
  int to = 0;
  Range range;
};
// Posts a receive of the next message of that rank, which carries the same range. It is written to
// this range of the buffer, or to the scratch from this element on, there in the wire's type.
struct Receive {
  int from = 0;
  Range range;
  std::optional<std::size_t> scratch_offset;
};
// Waits until the sends and receives that this chunk has posted are complete on this rank.
struct Wait {};
// A barrier of the group of ranks among the same chunk of each.
struct Barrier {
  std::uint32_t group = 0;  // index into RankPlan::groups
};
// An operand of a sum: the sum's range of the rank's own buffer, a received message in the scratch,
// or the sum's range of a peer's buffer, which must be addressable.
struct Operand {
  enum class Source : std::uint8_t { own_buffer, scratch, peer_buffer };
  Source source = Source::own_buffer;
  std::size_t index = 0;  // the first element in the scratch, or the rank of the peer
};
// Adds the operands, one after another or pairwise, and stores the result to the range of the own
// buffer, or with `into` to that range of the buffers of all ranks of a group.
struct Sum {
  Range range;
  std::uint32_t first_operand = 0, operand_count = 0;  // in RankPlan::operands
  std::optional<std::uint32_t> into;                   // index into RankPlan::groups
  bool pairwise = false;
  // Whether this is the final addition: the result is then scaled to a mean and rounded to the
  // wire's type, so that all ranks get the same bits.
  bool last = false;
  bool rounds = false;  // whether to round the result of an earlier addition to the wire's type
};
using Action = std::variant<Send, Receive, Wait, Barrier, Sum>;

// Actions that run in order, concurrently with those of other chunks. A chunk is done when all that
// it has posted is complete.
struct Chunk {
  std::vector<Action> actions;
  std::vector<std::size_t> after;  // the chunks of this rank that must be done before it starts
};

// The step list of one rank.
struct RankPlan {
  std::vector<Chunk> chunks;
  std::vector<Operand> operands;         // of all sums
  std::vector<std::vector<int>> groups;  // of ranks, ascending
  std::size_t scratch = 0;               // the elements of the scratch
  Wire wire = Wire::f32;

  std::span<const Operand> operands_of(const Sum& sum) const {
    return std::span(operands).subspan(sum.first_operand, sum.operand_count);
  }
};

// Returns the bytes of an element.
std::size_t size_of(Wire wire);

}  // namespace cnn::allreduce
