#pragma once

#include <span>
#include <string>
#include <string_view>

#include "allreduce/world.h"
#include "bench/report/result_json.h"
#include "runtime/program.h"

namespace cnn::bench {

// Texts that must be equal on all ranks of a run, which ranks compare line by line.

// Returns the program and its flags, without flags for file locations or for this host's
// computation.
std::string description(const RunIdentity& identity, std::string_view program = "cnn_benchmarks");

// Returns the exchange of a step, bucket by bucket: the number of tensors, their elements and
// layouts. with_places: also their addresses, for ranks that may exchange adjacent tensors as one.
std::string exchange_plan(const StepPlan& plan, bool with_places);

// Returns an error message for the first line in which the ranks' texts differ; empty if all are
// equal.
std::string first_difference(std::span<const std::string> of_ranks);

// Throws the Error of first_difference() on every rank if the ranks' texts differ. All ranks call
// it; throws PeerLost if a rank is lost.
void check_equal_on_all_ranks(allreduce::World& world, const std::string& text);

}  // namespace cnn::bench
