#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/engine.h"
#include "allreduce/simd/table.h"
#include "allreduce/transport.h"

namespace cnn::allreduce {

// Tells all ranks a few numbers of each of them, to the bit. Every use is also a meeting: no rank
// leaves it before all have come.
class Numbers {
 public:
  // most: numbers of a rank at once. Takes room of the transport, 16 bytes for each number of each
  // rank. References must outlive it.
  Numbers(Transport& transport, const simd::Loops& loops, const Topology& topology,
          std::size_t most);

  // All ranks' numbers, those of rank 0 first; valid until the next call. mine: at most `most`, as
  // many on all ranks. Throws PeerLost.
  std::span<const double> gather(std::span<const double> mine);

  void meet() { gather({}); }

 private:
  Transport& transport_;
  std::size_t most_;
  std::span<float> words_;
  std::unique_ptr<Engine> engine_;
  std::vector<double> all_;
};

}  // namespace cnn::allreduce
