#include "lms/level_simulator.h"

#include <algorithm>
#include <utility>

#include "lms/policy.h"
#include "lms/stash.h"
#include "runtime/access.h"

namespace cnn::lms {

std::size_t simulated_bytes(const Request& request) {
  return static_cast<std::size_t>(request.options.tflms2.simulated_share *
                                  static_cast<double>(request.budget.device));
}

LevelSimulator::LevelSimulator(const Request& request, const Levels& levels,
                               const LevelSwaps& swaps)
    : request_(request),
      levels_(levels),
      swaps_(swaps),
      available_(simulated_bytes(request)),
      readers_(request.graph.tensors().size()),
      in_(request.graph.nodes().size()),
      out_(request.graph.nodes().size()) {
  const Graph& graph = request.graph;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const auto add_roots = [&](const std::vector<TensorId>& tensors, std::vector<TensorId>& roots) {
      for (const TensorId tensor : tensors) {
        const TensorId root = graph.root_of(tensor);
        if (!is_persistent(graph.info(root).role) &&
            std::ranges::find(roots, root) == roots.end()) {
          roots.push_back(root);
        }
      }
    };
    add_roots(graph.nodes()[n].inputs, in_[n]);
    add_roots(graph.nodes()[n].outputs, out_[n]);
    for (const TensorId root : in_[n]) {
      ++readers_[index_of(root)];
    }
  }
}

// One simulation with one set of parameters.
class LevelSimulator::Play {
 public:
  Play(const LevelSimulator& simulator, const LevelParameters& parameters)
      : s_(simulator),
        parameters_(parameters),
        swaps_(simulator.swaps_.find(parameters)),
        swap_of_(simulator.readers_.size()),
        itself_(simulator.readers_.size()),
        triggered_(simulator.in_.size()) {
    for (std::size_t s = 0; s < swaps_.size(); ++s) {
      const LevelSwap& swap = swaps_[s];
      swap_of_[index_of(swap.tensor->tensor)] = s + 1;
      copies_.emplace_back(swap.groups.size());
      for (std::size_t g = 0; g < swap.groups.size(); ++g) {
        copies_.back()[g].bytes = swap.tensor->bytes;
        if (swap.groups[g].trigger) {
          triggered_[index_of(*swap.groups[g].trigger)].emplace_back(s, g);
        }
      }
    }
  }

  Outcome run() {
    for (std::size_t level = 0; level < s_.levels_.count(); ++level) {
      for (const NodeId node : s_.levels_.at(level)) {
        execute(node);
        if (failed_) {
          return {};
        }
      }
    }
    return {.passed = true, .host_bytes = max_host_bytes_};
  }

 private:
  // A tensor, or a copy of it for a group of readers.
  struct Bytes {
    std::uint64_t bytes = 0;
    std::size_t readers = 0;  // remaining readers
    bool there = false;
  };

  void execute(NodeId node) {
    for (const TensorId root : s_.in_[index_of(node)]) {
      Bytes& operand = operand_of(root, node);
      if (!operand.there) {
        bring(root, node, operand);
      }
    }
    for (const TensorId root : s_.out_[index_of(node)]) {
      make(root);
    }
    std::vector<Bytes*> leaving = std::exchange(leaving_, {});
    for (const TensorId root : s_.in_[index_of(node)]) {
      read(root, operand_of(root, node));
    }
    for (Bytes* bytes : leaving) {
      release(*bytes);
    }
    leave(node);
    for (const auto& [s, g] : triggered_[index_of(node)]) {
      fetch(s, g);
    }
  }

  Bytes& operand_of(TensorId root, NodeId reader) {
    if (const std::size_t s = swap_of_[index_of(root)]; s > 0) {
      const std::vector<ReaderGroup>& groups = swaps_[s - 1].groups;
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (std::ranges::find(groups[g].readers, reader) != groups[g].readers.end()) {
          return copies_[s - 1][g];
        }
      }
    }
    return itself_[index_of(root)];
  }

  // Brings an input of the graph, or a copy back without a trigger.
  void bring(TensorId root, NodeId reader, Bytes& operand) {
    if (&operand == &itself_[index_of(root)]) {
      make(root);
      return;
    }
    const std::size_t s = swap_of_[index_of(root)] - 1;
    const std::vector<ReaderGroup>& groups = swaps_[s].groups;
    const auto has_it = [&](const ReaderGroup& group) {
      return std::ranges::find(group.readers, reader) != group.readers.end();
    };
    fetch(s, static_cast<std::size_t>(std::ranges::find_if(groups, has_it) - groups.begin()));
  }

  void make(TensorId root) {
    Bytes& bytes = itself_[index_of(root)];
    const std::size_t s = swap_of_[index_of(root)];
    if (bytes.there || s_.readers_[index_of(root)] == 0) {
      return;
    }
    bytes.bytes = s_.request_.graph.info(root).desc.bytes();
    bytes.readers = s > 0 ? swaps_[s - 1].near.size() : s_.readers_[index_of(root)];
    allocate(bytes);
  }

  void fetch(std::size_t s, std::size_t g) {
    Bytes& copy = copies_[s][g];
    if (copy.there) {
      return;
    }
    copy.readers = swaps_[s].groups[g].readers.size();
    allocate(copy);
    if (g + 1 == copies_[s].size()) {
      host_bytes_ -= copy.bytes;
    }
  }

  void read(TensorId root, Bytes& operand) {
    if (--operand.readers > 0) {
      return;
    }
    const bool leaves = swap_of_[index_of(root)] > 0 && &operand == &itself_[index_of(root)];
    if (leaves) {
      let_go(operand);
    } else {
      release(operand);
    }
  }

  // Evicts the node's outputs that only distant readers need.
  void leave(NodeId node) {
    for (const TensorId root : s_.out_[index_of(node)]) {
      const std::size_t s = swap_of_[index_of(root)];
      if (s == 0 || s_.levels_.node(swaps_[s - 1].tensor->made) != node) {
        continue;
      }
      Bytes& bytes = itself_[index_of(root)];
      host_bytes_ += bytes.bytes;
      max_host_bytes_ = std::max(max_host_bytes_, host_bytes_);
      if (bytes.readers == 0 && bytes.there) {
        let_go(bytes);
      }
    }
  }

  // The copy out takes as long as the next node, unless compute waits for it.
  void let_go(Bytes& bytes) {
    if (waits_for_out(parameters_.sync)) {
      release(bytes);
    } else if (std::ranges::find(leaving_, &bytes) == leaving_.end()) {
      leaving_.push_back(&bytes);
    }
  }

  void allocate(Bytes& bytes) {
    failed_ = failed_ || (bytes.bytes > 0 && used_ + bytes.bytes >= s_.available_);
    used_ += bytes.bytes;
    bytes.there = true;
  }
  void release(Bytes& bytes) {
    used_ -= bytes.bytes;
    bytes.there = false;
  }

  const LevelSimulator& s_;
  const LevelParameters& parameters_;
  std::vector<LevelSwap> swaps_;
  std::vector<std::size_t> swap_of_;        // by TensorId: index in swaps_ from 1 on, 0: stays
  std::vector<Bytes> itself_;               // by TensorId
  std::vector<std::vector<Bytes>> copies_;  // by swap and group
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> triggered_;  // by NodeId
  std::vector<Bytes*> leaving_;  // while the next node runs
  std::uint64_t used_ = 0, host_bytes_ = 0, max_host_bytes_ = 0;
  bool failed_ = false;
};

LevelSimulator::Outcome LevelSimulator::play(const LevelParameters& parameters) const {
  return Play(*this, parameters).run();
}

}  // namespace cnn::lms
