#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "allreduce/simd/table.h"
#include "allreduce/step_list.h"
#include "allreduce/transport.h"

namespace cnn::allreduce {

// One rank's list with all its addresses: run again and again, it allocates nothing. All ranks make
// the same bucket reductions in the same order, with buffers at the same places of their rooms.
class Engine {
 public:
  // buffer: pieces that together are what the plan reduces; in a room of the transport, as far as
  // there are peers. wire: that of an engine for the same bucket, whose place this one takes;
  // empty: it takes a room of its own. References must outlive the engine. Throws Error if the plan
  // needs more channels than the transport has, or memory of peers that is not in sight.
  Engine(Transport& transport, const simd::Loops& loops, RankPlan plan,
         std::span<const std::span<float>> buffer, Bytes wire = {});

  // The buffer becomes the sum of all ranks' buffers times the factor. Returns when this rank's
  // list has ended. Throws PeerLost.
  void run(float factor);

  // Whether the chunk that has got on least in the latest run still has sums to make.
  bool has_sums_to_make() const;

  Bytes wire() const { return wire_; }  // where messages lie; empty: in the buffer

 private:
  struct Pieces {  // of pieces_
    std::uint32_t first = 0, count = 0;
  };
  // An action as it is run: its operands in flat tables.
  struct Resolved {
    Pieces own, wire, to;  // of the range; of what is sent or stands for it; of where it arrives
    std::uint32_t first_sum = 0, sums = 0;
    bool narrows = false;  // the first to send this range: another rank may read it for the next
  };
  struct Running {  // a chunk
    std::vector<Resolved> actions;
    std::vector<bool> complete;  // messages
    std::size_t next = 0, open_from = 0;
    bool came = false, done = false;
  };
  class Resolver;

  std::span<const Bytes> at(const Pieces& pieces) const {
    return std::span(pieces_).subspan(pieces.first, pieces.count);
  }
  bool advance(std::size_t chunk);  // true: it got on
  bool step(std::size_t chunk, const Send& send);
  bool step(std::size_t chunk, const Receive& receive);
  bool step(std::size_t chunk, const Wait& wait);
  bool step(std::size_t chunk, const Meet& meet);
  bool step(std::size_t chunk, const Sum& sum);
  bool messages_complete(std::size_t chunk);
  bool complete(std::size_t chunk, std::size_t action);
  bool may_start(std::size_t chunk) const;
  std::optional<int> missing(std::size_t chunk) const;  // a rank that it waits for
  int blocked_by() const;                               // such a rank of any chunk

  Transport& transport_;
  const simd::Loops& loops_;
  RankPlan plan_;
  float factor_ = 1;
  std::vector<std::byte> scratch_;
  Bytes wire_;  // the buffer as messages carry it, if they are narrower
  std::vector<Bytes> pieces_;
  std::vector<simd::Sum> sums_;
  std::vector<simd::Operand> operands_;
  std::vector<float*> outputs_;
  std::vector<Running> chunks_;
};

}  // namespace cnn::allreduce
