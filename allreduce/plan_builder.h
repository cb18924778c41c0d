#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/step_list.h"

// Helpers for the generators of step lists.
namespace cnn::allreduce {

// Returns part k of p equal parts of the range. Sizes differ by one element at most.
Range slice(Range all, std::size_t k, std::size_t p);
std::vector<Range> slices(Range all, std::size_t p);

// The ranks of a collective, and the position of this rank among them.
struct Group {
  std::vector<int> ranks;
  std::size_t self = 0;

  std::size_t size() const { return ranks.size(); }
  // Returns the rank at that distance behind this one, or before it if negative, modulo the size.
  int at(std::ptrdiff_t offset) const { return ranks[index(offset)]; }
  std::size_t index(std::ptrdiff_t offset) const;
};
Group all_ranks(const Topology& topology, int rank);

// Builds the step list of one rank, chunk after chunk. Leaves out actions on empty ranges.
class PlanBuilder {
 public:
  PlanBuilder(const Options& options) : options_(options) {}  // NOLINT(google-explicit-constructor)

  void begin_chunk() { plan_.chunks.emplace_back(); }
  void send(int to, Range range);
  void receive(int from, Range range);
  // Returns the operand for the message, which stays in the scratch until the next sum().
  Operand receive_to_scratch(int from, Range range);
  void wait();
  void barrier(const std::vector<int>& group);
  // Adds `other` to the own buffer.
  void add(Range range, Operand other, bool last);
  // into: the ranks whose buffers get the result; empty: this one.
  void sum(Range range, std::span<const Operand> operands, bool last,
           std::span<const int> into = {});
  // Rounds what this rank contributes to a sum as messages round what other ranks do. Does nothing
  // unless the sums have an order and the wire has 16 bits.
  void round_own(Range range);
  const Options& options() const { return options_; }

  // Returns the plan. Chunks that may run concurrently get separate parts of the scratch.
  RankPlan finish() &&;

 private:
  std::uint32_t group(std::span<const int> ranks);
  // Returns the sum; its operands are appended to those of the plan.
  Sum sum_of(Range range, std::span<const Operand> operands, bool last, std::span<const int> into);
  std::vector<Action>& actions() { return plan_.chunks.back().actions; }

  const Options& options_;
  RankPlan plan_;
  std::size_t used_ = 0, max_used_ = 0;  // elements of a chunk's scratch
};

// Cuts the range into the chunks that the options ask for, calls write(builder, chunk) for each,
// and returns the finished plan.
RankPlan in_chunks(const Options& options, Range all,
                   const std::function<void(PlanBuilder&, Range)>& write);

// The two halves of an all-reduce in a group. After reduce-scatter, member i has the sum of
// slices[i]; after all-gather, all members have all slices. last: as Sum::last.
void ring_reduce_scatter(PlanBuilder& builder, const Group& group, std::span<const Range> slices,
                         bool last);
void ring_all_gather(PlanBuilder& builder, const Group& group, std::span<const Range> slices);
void direct_reduce_scatter(PlanBuilder& builder, const Group& group, std::span<const Range> slices,
                           bool last);
void direct_all_gather(PlanBuilder& builder, const Group& group, std::span<const Range> slices);
// The same for ranks that share memory: sums read and write the buffers of peers, nothing is sent.
void shared_reduce_scatter(PlanBuilder& builder, const Group& group, std::span<const Range> slices,
                           bool last);
void shared_all_gather(PlanBuilder& builder, const Group& group, std::span<const Range> slices);

}  // namespace cnn::allreduce
