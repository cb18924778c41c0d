#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/step_list.h"

// Tools of generators of step lists.
namespace cnn::allreduce {

// Piece k of p equal ones; sizes differ by one element at most.
Range slice(Range all, std::size_t k, std::size_t p);
std::vector<Range> slices(Range all, std::size_t p);

// Ranks that exchange with one another, and which of them this one is.
struct Group {
  std::vector<int> ranks;
  std::size_t self = 0;

  std::size_t size() const { return ranks.size(); }
  // Ranks `offset` behind (or before, if negative) this one, round and round.
  int at(std::ptrdiff_t offset) const { return ranks[index(offset)]; }
  std::size_t index(std::ptrdiff_t offset) const;
};
Group everyone(const Topology& topology, int rank);

// Writes one rank's list, chunk after chunk. A part without elements is left out.
class Writer {
 public:
  Writer(const Options& options) : options_(options) {}  // NOLINT(google-explicit-constructor)

  void begin_chunk() { plan_.chunks.emplace_back(); }
  void send(int to, Range range);
  void receive(int from, Range range);
  Part receive_beside(int from, Range range);  // room for it is there until the next sum()
  void wait();
  void meet(const std::vector<int>& group);
  // own = own + other, in this chunk.
  void add(Range range, Part other, bool last);
  // into: these ranks get the result; empty: the own buffer.
  void sum(Range range, std::span<const Part> parts, bool last, std::span<const int> into = {});
  const Options& options() const { return options_; }

  // Gives each of the chunks that may run at once a room of its own for what it receives beside.
  RankPlan finish() &&;

 private:
  std::uint32_t group(std::span<const int> ranks);
  std::vector<Action>& actions() { return plan_.chunks.back().actions; }

  const Options& options_;
  RankPlan plan_;
  std::size_t used_ = 0, most_used_ = 0;  // of a chunk's scratch
};

// Calls write(writer, range of chunk) for the chunks that the options ask for, and finishes.
RankPlan in_chunks(const Options& options, Range all,
                   const std::function<void(Writer&, Range)>& write);

// Two halves of an all-reduce among a group: then rank i of it has the sum of slices[i]; all have
// all slices.
void ring_reduce_scatter(Writer& writer, const Group& group, std::span<const Range> slices,
                         bool last);
void ring_all_gather(Writer& writer, const Group& group, std::span<const Range> slices);
void direct_reduce_scatter(Writer& writer, const Group& group, std::span<const Range> slices,
                           bool last);
void direct_all_gather(Writer& writer, const Group& group, std::span<const Range> slices);
// Among ranks that share memory: nothing is sent, sums are made where the buffers lie.
void shared_reduce_scatter(Writer& writer, const Group& group, std::span<const Range> slices,
                           bool last);
void shared_all_gather(Writer& writer, const Group& group, std::span<const Range> slices);

}  // namespace cnn::allreduce
