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

// A way to reduce a buffer, with the seconds that the model gives it.
struct Candidate {
  const Algorithm* algorithm = nullptr;
  Options options;
  double seconds = 0;
};

// The limits of a choice; where nothing is said, it goes by the model.
struct Shape {
  std::vector<int> dims = {};   // ranks as a grid; one dimension: none
  int rings = 0;                // side by side
  std::size_t chunk_bytes = 0;  // of a bucket, that travel on their own
  int window = 0;               // chunks at once
};

// The question to a choice.
struct Wish {
  std::size_t elements = 0;
  Order order = Order::fast;
  Wire wire = Wire::f32;
  bool peers_memory = false;  // ranks of a host see one another's
  std::size_t channels = 64;  // that ranks have: a list may have as many chunks
  int pieces = 0;             // that it is cut into; 0: as the model likes
  Shape shape = {};
};

// All ways that the catalog has for these ranks and this order, the fastest first: grids over the
// factors of ranks in a host and of hosts (none above 16 where it can be divided), one or more
// rings, and chunks as many as hide one dimension under another. Where an order of sums is asked
// for, those only that give the same bits whatever the links do, unless the shape says which. For
// more than 16 ranks those that estimate() finds the fastest are simulated, the others left out. A
// function of its arguments alone, so that all ranks choose alike.
std::vector<Candidate> candidates(const Topology& topology, const Wish& wish, const Links& links);

// The algorithm for buckets of up to so many elements: this algorithm, or null: the fastest.
struct Rule {
  std::size_t most = std::numeric_limits<std::size_t>::max();
  const Algorithm* algorithm = nullptr;
  Options options = {};
};

// How buckets are reduced, the same on all ranks.
struct Settings {
  Topology topology;
  Order order = Order::fast;
  Wire wire = Wire::f32;
  bool peers_memory = true;      // ranks of a host see one another's
  Links links = {};              // what the choice of an algorithm goes by
  LinkSources sources = {};      // of these links
  Limits limits = {};            // of the hardware; unknown where nothing was measured
  std::vector<Rule> rules = {};  // ascending; the first that is large enough holds. Empty: fastest
  int pieces = 0;                // of each bucket; 0: as the model likes
  Shape shape = {};              // of what is chosen, not of what the rules name
  bool compares = false;         // the ranks' results, after every reduction
  bool proves = false;  // each bucket first with numbers of known sums; bf16: of up to 256 ranks
  std::optional<Fault> fault = {};  // that befalls a rank
  StallWarning stall = {};
};

// candidates() for a bucket, or the one way that the rules leave. Throws Error if that cannot be
// made of these ranks.
std::vector<Candidate> ways_of(const Settings& settings, std::size_t elements,
                               std::size_t channels = Wish{}.channels);

// Whether ways_of() finds one for these elements, by the rule for them and by all others; nothing
// is simulated.
bool can_reduce(const Settings& settings, std::size_t elements,
                std::size_t channels = Wish{}.channels);

// "4x8", "-" without dimensions.
std::string dims_text(const Options& options);

}  // namespace cnn::allreduce
