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

// Readers that share a copy back, by level, and the node whose end starts it; nothing: it starts
// when all else that the first reader needs is there.
struct ReaderGroup {
  std::vector<NodeId> readers;
  std::optional<NodeId> trigger;
};

// A tensor that leaves: some of its readers are far from what makes it.
struct LevelSwap {
  const Stashed* tensor = nullptr;
  std::vector<NodeId> near;  // readers that use the tensor itself
  std::vector<ReaderGroup> groups;
};

// Finds what leaves. All that it is made of must outlive it.
class LevelSwaps {
 public:
  // tensors: candidates. Those of rank 0 or 1 stay, as they did in the original.
  LevelSwaps(const Request& request, const Levels& levels, std::span<const Stashed> tensors);

  // In the order of the tensors, at most as many as the options let leave.
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
