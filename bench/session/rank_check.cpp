#include "bench/session/rank_check.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "bench/flags/conditions.h"
#include "bench/ranks/rank_context.h"
#include "bench/session/step_runner.h"

namespace cnn::bench {
namespace {

bool wants_hashes(const Config& config, bool is_first) {
  return repeats_on_all_ranks(config) || (is_first && config.report.hash_file);
}

// Groups of ranks by their results, and the first hash of the step in which they differ.
struct Difference {
  std::size_t place = 0;  // index in the list of hashes
  std::map<std::uint64_t, std::vector<std::size_t>> ranks;
  std::size_t count = 0;  // differing hashes
  std::size_t all = 0;    // all hashes
};

Difference find_difference(std::span<const std::vector<TensorHash>> of_ranks) {
  Difference difference;
  difference.all = of_ranks.front().size();
  for (std::size_t i = 0; i < difference.all; ++i) {
    const bool equal = std::ranges::all_of(
        of_ranks, [&](const auto& hashes) { return hashes[i] == of_ranks.front()[i]; });
    if (equal) {
      continue;
    }
    if (difference.count++ == 0) {
      difference.place = i;
      for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
        difference.ranks[of_ranks[rank][i].hash].push_back(rank);
      }
    }
  }
  return difference;
}

std::string tensor_text(const WrittenTensor& tensor) {
  return fmt::format("{} (output {} of node {}, {}{}{})", tensor.name, tensor.output,
                     tensor.node_name, to_string(tensor.desc), tensor.layer.empty() ? "" : ", of ",
                     tensor.layer);
}

std::string ranks_text(std::span<const std::size_t> ranks, std::span<const std::string> hosts) {
  std::vector<std::string> names;
  for (const std::size_t rank : ranks) {
    names.push_back(fmt::format("{} (host {})", rank, hosts[rank]));
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(names, ", "));
}

std::string without_majority(const Difference& difference, std::span<const std::string> hosts) {
  std::vector<std::string> parts;
  for (const auto& [hash, ranks] : difference.ranks) {
    parts.push_back(fmt::format("{:016x} on {}", hash, ranks_text(ranks, hosts)));
  }
  return fmt::format(
      "{}; no value has a majority, so that nobody can say which is wrong: start "
      "three ranks or more",
      fmt::join(parts, ", "));
}

}  // namespace

RankCheck::RankCheck(const Config& config, const RankContext& context, bool is_first,
                     StepRunner& runner)
    : context_(context),
      every_(config.report.hash_steps),
      finite_step_(config.report.check_finite_step) {
  if (flips_a_bit(config.comm.fault)) {
    const FaultSpec fault = parse_fault_spec(*config.comm.fault);
    if (fault.rank == context.rank) {
      try {
        flip_.emplace(fault, WrittenTensors(*runner.plan().graph), *context.backend.device);
      } catch (const Error& error) {
        throw Error(fmt::format("--comm_fault={}: {}", *config.comm.fault, error.what()));
      }
      runner.observe(*flip_);
    }
  }
  if (wants_hashes(config, is_first)) {
    hashes_.emplace(runner.plan(), context.backend);
    runner.observe(*hashes_);  // after the flip, so that hashes include it
  }
  if (finite_step_) {
    finite_.emplace(runner.plan(), context.backend);
    runner.observe(*finite_);
  }
}

void RankCheck::begin(std::int64_t global_step) {
  if (flip_) {
    flip_->begin(global_step);
  }
  hashed_ = false;
  due_ = hashes_ && global_step % every_ == 0;
  if (hashes_) {
    hashes_->begin(due_);
  }
  if (finite_) {
    finite_->begin(global_step == finite_step_);
  }
}

std::string RankCheck::environment_text() const {
  std::string text = fmt::format("{}\n", context_.backend.instruction_sets);
  if (context_.backend.processors.threads > 0) {
    text += fmt::format("{} computing threads (--num_intra_threads)\n",
                        context_.backend.processors.threads);
  }
  if (context_.backend.gpu) {
    text += context_.backend.gpu->name + "\n";
  }
  for (const auto& [name, version] : context_.backend.libraries) {
    text += fmt::format("{} {}\n", name, version);
  }
  for (const WrittenTensor& tensor : hashes_->tensors().all()) {
    text += fmt::format("{} {}\n", tensor.name, to_string(tensor.desc));
  }
  return text;
}

void check_fault_rank(const Config& config, int ranks) {
  if (flips_a_bit(config.comm.fault)) {
    check(parse_fault_spec(*config.comm.fault).rank < ranks,
          fmt::format("--comm_fault={}: there {} {} rank{}, from 0 on", *config.comm.fault,
                      ranks == 1 ? "is" : "are", ranks, ranks == 1 ? "" : "s"));
  }
}

std::string difference_text(std::int64_t global_step, const WrittenTensors& tensors,
                            std::span<const std::vector<TensorHash>> of_ranks,
                            std::span<const std::string> hosts) {
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
    if (!std::ranges::equal(of_ranks[rank], of_ranks.front(), {}, &TensorHash::tensor,
                            &TensorHash::tensor)) {
      return fmt::format(
          "--comm_check=majority: in global step {} rank {} has run other nodes "
          "than rank 0",
          global_step, rank);
    }
  }
  const Difference difference = find_difference(of_ranks);
  const std::string where = tensor_text(tensors.all()[of_ranks.front()[difference.place].tensor]);
  const std::string counts = fmt::format("{} of the {} tensors that the step wrote differ",
                                         difference.count, difference.all);
  const auto most = std::ranges::max_element(difference.ranks, {},
                                             [](const auto& entry) { return entry.second.size(); });
  const std::size_t majority = most->second.size();
  if (2 * majority <= of_ranks.size()) {
    return fmt::format(
        "--comm_check=majority: ranks compute differently in global step {}, first "
        "in {}: {}; {}",
        global_step, where, without_majority(difference, hosts), counts);
  }
  std::vector<std::size_t> others;
  for (const auto& [hash, ranks] : difference.ranks) {
    if (hash != most->first) {
      others.insert(others.end(), ranks.begin(), ranks.end());
    }
  }
  std::ranges::sort(others);
  const bool one = others.size() == 1;
  return fmt::format(
      "--comm_check=majority: {} compute{} differently from the other {} in global "
      "step {}, first in {}: {:016x} instead of {:016x}; {}; have {} checked",
      ranks_text(others, hosts), one ? "s" : "", majority, global_step, where,
      of_ranks[others.front()][difference.place].hash, most->first, counts,
      one ? "its machine" : "their machines");
}

}  // namespace cnn::bench
