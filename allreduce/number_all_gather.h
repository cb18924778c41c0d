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

// An exact all-gather of a few numbers of each rank. Every use is also a barrier.
class NumberAllGather {
 public:
  // most: how many numbers a rank can give at once. Allocates 16 bytes of shared memory for each
  // number of each rank. References must outlive it.
  NumberAllGather(Transport& transport, const simd::Loops& loops, const Topology& topology,
                  std::size_t most);

  // Returns the numbers of all ranks, those of rank 0 first, which stay valid until the next call.
  // mine: at most `most` numbers, equally many on all ranks. Throws PeerLost.
  std::span<const double> gather(std::span<const double> mine);

  void barrier() { gather({}); }

 private:
  Transport& transport_;
  std::size_t most_;
  std::span<float> words_;
  std::unique_ptr<Engine> engine_;
  std::vector<double> all_;
};

}  // namespace cnn::allreduce
