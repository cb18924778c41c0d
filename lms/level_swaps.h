#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lms/levels.h"
#include "lms/options.h"

namespace cnn::lms {

struct Request;
struct Stashed;

// The parameters of TFLMS 2. Distances are in levels; -1: not set.
struct LevelParameters {
  std::int64_t threshold = -1, ahead = -1, groupby = -1;
  SyncMode sync = SyncMode::none;
};

// Readers that share a copy back, by level, and the node whose end starts the copy; nothing: the
// copy starts when all other operands of the first reader exist.
struct ReaderGroup {
  std::vector<NodeId> readers;
  std::optional<NodeId> trigger;
};

// A tensor that leaves because some of its readers are far from its producer.
struct LevelSwap {
  const Stashed* tensor = nullptr;
  std::vector<NodeId> near;  // readers that use the tensor before it leaves
  std::vector<ReaderGroup> groups;
};

// Finds the tensors that leave. All references must outlive it.
class LevelSwaps {
 public:
  // tensors: candidates. Tensors of rank 0 or 1 stay, as in the original.
  LevelSwaps(const Request& request, const Levels& levels, std::span<const Stashed> tensors);

  // Returns swaps in the order of the tensors, at most as many as the options permit.
  std::vector<LevelSwap> find(const LevelParameters& parameters) const;

 private:
  LevelSwap divide(const Stashed& tensor, const LevelParameters& parameters) const;
  std::vector<ReaderGroup> group(NodeId producer, const std::vector<NodeId>& far,
                                 const LevelParameters& parameters) const;
  std::optional<NodeId> trigger(NodeId producer, NodeId consumer, std::int64_t ahead) const;

  const Request& request_;
  const Levels& levels_;
  std::vector<const Stashed*> tensors_;
};

}  // namespace cnn::lms
