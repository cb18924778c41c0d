#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/engine.h"
#include "allreduce/shared_memory.h"
#include "tests/allreduce/usable_loops.h"

namespace cnn::tests {

// Runs a function as each of n ranks, each on a thread. Returns the error of each rank, or "".
inline std::vector<std::string> as_threads(int ranks, const allreduce::SharedMemoryOptions& options,
                                           const std::function<void(allreduce::Transport&)>& work) {
  allreduce::SharedMemory memory = allreduce::SharedMemory::for_threads(ranks, options);
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto transport = memory.join(rank);
        work(*transport);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

// Returns the numbers that a rank contributes: small integers on request, otherwise numbers of all
// magnitudes, which make the order of sums visible.
inline std::vector<float> contribution(int rank, std::size_t n, bool whole_numbers) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::vector<float> values(n);
  for (float& value : values) {
    const float number = static_cast<float>(static_cast<int>(random() % 2001) - 1000);
    value = whole_numbers ? number : number / static_cast<float>(random() % 997 + 1);
  }
  return values;
}

// The parameters of one reduction.
struct Job {
  std::string algorithm;
  std::size_t elements = 0;
  allreduce::Options options = {};
  std::size_t pieces = 1;  // pieces of the buffer, with gaps between them
  float factor = 1;
  bool whole_numbers = false;
  int times = 1;
};

// Runs the reduction and returns this rank's result.
inline std::vector<float> reduce(allreduce::Transport& transport,
                                 const allreduce::Topology& topology, const Job& job) {
  const std::size_t gap = 3;
  const allreduce::Bytes memory =
      transport.allocate_shared((job.elements + gap * job.pieces) * sizeof(float));
  std::vector<std::span<float>> pieces;
  float* next = reinterpret_cast<float*>(memory.data());
  for (std::size_t k = 0; k < job.pieces; ++k) {
    const std::size_t n = job.elements * (k + 1) / job.pieces - job.elements * k / job.pieces;
    pieces.emplace_back(next, n);
    next += n + gap;
  }
  allreduce::Engine engine(transport, *usable_loops().back(),
                           allreduce::make_plan(allreduce::find(job.algorithm), topology,
                                                transport.rank(), job.elements, job.options),
                           pieces);
  const std::vector<float> mine = contribution(transport.rank(), job.elements, job.whole_numbers);
  std::vector<float> result;
  for (int time = 0; time < job.times; ++time) {
    const float* from = mine.data();
    for (const std::span<float>& piece : pieces) {
      std::copy_n(from, piece.size(), piece.data());
      from += piece.size();
    }
    engine.run(job.factor);
    result.clear();
    for (const std::span<float>& piece : pieces) {
      result.insert(result.end(), piece.begin(), piece.end());
    }
    // A barrier keeps every rank from starting the next reduction while another rank still copies.
    std::vector<int> all(static_cast<std::size_t>(transport.ranks()));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      all[rank] = static_cast<int>(rank);
    }
    transport.arrive(all, transport.channels() - 1);
    while (!transport.arrived(all, transport.channels() - 1)) {
      transport.idle(transport.rank() == 0 ? transport.ranks() - 1 : 0);
    }
    transport.busy();
  }
  return result;
}

}  // namespace cnn::tests
