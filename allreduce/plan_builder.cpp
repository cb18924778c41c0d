#include "allreduce/plan_builder.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "runtime/divide_up.h"

namespace cnn::allreduce {

std::size_t size_of(Wire wire) { return wire == Wire::f32 ? 4 : 2; }

Range slice(Range all, std::size_t k, std::size_t p) {
  return {all.begin + all.size() * k / p, all.begin + all.size() * (k + 1) / p};
}

std::vector<Range> slices(Range all, std::size_t p) {
  std::vector<Range> result(p);
  for (std::size_t k = 0; k < p; ++k) {
    result[k] = slice(all, k, p);
  }
  return result;
}

std::size_t Group::index(std::ptrdiff_t offset) const {
  const auto n = static_cast<std::ptrdiff_t>(size());
  return static_cast<std::size_t>(((static_cast<std::ptrdiff_t>(self) + offset) % n + n) % n);
}

Group all_ranks(const Topology& topology, int rank) {
  Group group{std::vector<int>(topology.host_of.size()), static_cast<std::size_t>(rank)};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

void PlanBuilder::send(int to, Range range) {
  if (!range.empty()) {
    actions().push_back(Send{to, range});
  }
}

void PlanBuilder::receive(int from, Range range) {
  if (!range.empty()) {
    actions().push_back(Receive{from, range, std::nullopt});
  }
}

Operand PlanBuilder::receive_to_scratch(int from, Range range) {
  const Operand operand{Operand::Source::scratch, used_};
  if (!range.empty()) {
    actions().push_back(Receive{from, range, used_});
    used_ += range.size();
    max_used_ = std::max(max_used_, used_);
  }
  return operand;
}

void PlanBuilder::wait() {
  if (!actions().empty() && !std::holds_alternative<Wait>(actions().back())) {
    actions().push_back(Wait{});
  }
}

std::uint32_t PlanBuilder::group(std::span<const int> ranks) {
  const auto same = [&](const std::vector<int>& known) { return std::ranges::equal(known, ranks); };
  const auto found = std::ranges::find_if(plan_.groups, same);
  const auto index = static_cast<std::uint32_t>(found - plan_.groups.begin());
  if (found == plan_.groups.end()) {
    plan_.groups.emplace_back(ranks.begin(), ranks.end());
  }
  return index;
}

void PlanBuilder::barrier(const std::vector<int>& ranks) {
  actions().push_back(Barrier{group(ranks)});
}

void PlanBuilder::add(Range range, Operand other, bool last) {
  sum(range, std::array{Operand{}, other}, last);
}

void PlanBuilder::sum(Range range, std::span<const Operand> operands, bool last,
                      std::span<const int> into) {
  used_ = 0;
  if (!range.empty()) {
    actions().push_back(sum_of(range, operands, last, into));
  }
}

void PlanBuilder::round_own(Range range) {
  if (range.empty() || options_.order == Order::fast || options_.wire == Wire::f32) {
    return;
  }
  Sum sum = sum_of(range, std::array{Operand{}}, false, {});
  sum.rounds = true;
  actions().push_back(sum);
}

Sum PlanBuilder::sum_of(Range range, std::span<const Operand> operands, bool last,
                        std::span<const int> into) {
  Sum sum{range, static_cast<std::uint32_t>(plan_.operands.size()),
          static_cast<std::uint32_t>(operands.size())};
  plan_.operands.insert(plan_.operands.end(), operands.begin(), operands.end());
  if (!into.empty()) {
    sum.into = group(into);
  }
  sum.pairwise = options_.order == Order::tree;
  sum.last = last;
  return sum;
}

RankPlan PlanBuilder::finish() && {
  const auto window = static_cast<std::size_t>(options_.window);
  const std::size_t chunk_scratch = round_up(max_used_, 16);  // whole cache lines of 64 bytes
  for (std::size_t c = 0; c < plan_.chunks.size(); ++c) {
    const std::size_t base = c % window * chunk_scratch;
    if (c >= window) {
      plan_.chunks[c].after.push_back(c - window);
    }
    for (Action& action : plan_.chunks[c].actions) {
      if (auto* const receive = std::get_if<Receive>(&action);
          receive != nullptr && receive->scratch_offset) {
        *receive->scratch_offset += base;
      } else if (const auto* const sum = std::get_if<Sum>(&action); sum != nullptr) {
        for (Operand& operand :
             std::span(plan_.operands).subspan(sum->first_operand, sum->operand_count)) {
          operand.index += operand.source == Operand::Source::scratch ? base : 0;
        }
      }
    }
  }
  plan_.scratch = chunk_scratch * std::min(window, plan_.chunks.size());
  plan_.wire = options_.wire;
  return std::move(plan_);
}

RankPlan in_chunks(const Options& options, Range all,
                   const std::function<void(PlanBuilder&, Range)>& write) {
  PlanBuilder builder(options);
  for (const Range& range : slices(all, static_cast<std::size_t>(options.chunks))) {
    builder.begin_chunk();
    write(builder, range);
  }
  return std::move(builder).finish();
}

}  // namespace cnn::allreduce
