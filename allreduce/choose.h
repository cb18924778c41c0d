#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/cost.h"
#include "allreduce/fault.h"
#include "allreduce/limits.h"
#include "allreduce/stall.h"

namespace cnn::allreduce {

// An algorithm with its options, and the time that the model predicts for it.
struct Candidate {
  const Algorithm* algorithm = nullptr;
  Options options;
  double seconds = 0;
};

// Restrictions of a choice; a member that is not set leaves it to the model.
struct Shape {
  std::vector<int> dims = {};   // of the grid of ranks; one dimension: no grid
  int rings = 0;                // that run concurrently
  std::size_t chunk_bytes = 0;  // the size of a chunk of a bucket
  int window = 0;               // number of chunks that run concurrently
};

// The properties that an all-reduce must have.
struct Requirements {
  std::size_t elements = 0;
  Order order = Order::fast;
  Wire wire = Wire::f32;
  bool peers_memory = false;  // whether ranks of a host can address one another's memory
  std::size_t channels = 64;  // the most chunks of a step list
  int pieces = 0;             // the number of chunks; 0: the model decides
  Shape shape = {};
};

// Returns all candidates of the catalog that meet the requirements, the fastest first: grids over
// the factors of the numbers of ranks per host and of hosts (none above 16 that can be divided),
// one or several rings, and as many chunks as hide one dimension behind another. With an order of
// sums, only those whose bits do not depend on the measured links, unless the shape names one. For
// more than 16 ranks only those with the best estimate() are simulated. A pure function, so that
// all ranks choose alike. Throws Error if there is none.
std::vector<Candidate> candidates(const Topology& topology, const Requirements& requirements,
                                  const Links& links);

// Names the algorithm for buckets up to a size; null: the fastest.
struct Rule {
  std::size_t most = std::numeric_limits<std::size_t>::max();  // elements
  const Algorithm* algorithm = nullptr;
  Options options = {};
};

// The settings of all bucket reductions, equal on all ranks.
struct Settings {
  Topology topology;
  Order order = Order::fast;
  Wire wire = Wire::f32;
  bool peers_memory = true;      // whether ranks of a host can address one another's memory
  Links links = {};              // the input of the cost model
  LinkSources sources = {};      // the origin of these links
  Limits limits = {};            // of the hardware; unknown if they were not measured
  std::vector<Rule> rules = {};  // by ascending size; the first that fits holds. Empty: the fastest
  int pieces = 0;                // chunks of each bucket; 0: the model decides
  Shape shape = {};              // restricts what the model chooses, not what rules name
  bool compares = false;         // whether ranks compare a hash of the result after every reduction
  // Whether the first reduction of each bucket is preceded by one of numbers with known sums. With
  // a bf16 wire this works for up to 256 ranks.
  bool proves = false;
  std::optional<Fault> fault = {};  // an injected fault
  StallWarning stall = {};
};

// Returns the candidates for a bucket: candidates(), or the one that a rule names. Throws Error if
// that one is not possible among these ranks.
std::vector<Candidate> candidates_for(const Settings& settings, std::size_t elements,
                                      std::size_t channels = Requirements{}.channels);

// Returns whether candidates_for() finds one for these elements by each of the rules. Simulates
// nothing.
bool can_reduce(const Settings& settings, std::size_t elements,
                std::size_t channels = Requirements{}.channels);

// Returns a text such as "4x8", or "-" without dimensions.
std::string dims_text(const Options& options);

}  // namespace cnn::allreduce
