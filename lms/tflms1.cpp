// TFLMS version 1, as in PowerAI 5.2: walks the forward pass breadth-first and swaps out every
// tensor that the backward pass reads; lb and ub limit how many steps ahead its copies back start.
// T. D. Le et al., "TFLMS: Large Model Support in TensorFlow by Graph Rewriting", 2018, and its
// module of 2018. It considers neither bytes nor times. Its "step" is a level here; every node has
// a level, so its case of consumers without an order cannot occur.

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lms/levels.h"
#include "lms/policies.h"
#include "lms/stash.h"
#include "lms/swap_ins.h"

namespace cnn::lms {
namespace {

class Triggers {
 public:
  Triggers(const Levels& levels, const Tflms1Options& options, StepId backward)
      : levels_(levels), options_(options), backward_(backward) {}

  // Returns the node whose end starts the copy back for `consumer`; nothing: none was found.
  std::optional<NodeId> find(NodeId producer, NodeId consumer) const {
    const bool far = order(consumer) - options_.lb > order(producer);
    const std::int64_t lb = far ? options_.lb : 1;
    return options_.ctrld_strategy == TriggerRule::direct_order
               ? direct_order(producer, consumer, lb)
               : chain_rule(producer, consumer, lb);
  }

 private:
  std::int64_t order(NodeId node) const { return static_cast<std::int64_t>(levels_.of(node)); }
  bool is_backward(NodeId node) const { return levels_.step(node) >= backward_; }

  // Returns a node that the consumer needs, in the nearest level at least lb and at most ub before
  // it.
  std::optional<NodeId> direct_order(NodeId producer, NodeId consumer, std::int64_t lb) const {
    const std::int64_t lowest = std::max(order(consumer) - options_.ub, order(producer)) + 1;
    for (std::int64_t level = order(consumer) - lb - 1; level >= lowest; --level) {
      for (const NodeId node : levels_.at(static_cast<std::size_t>(level))) {
        if (levels_.reaches(node, consumer)) {
          return node;
        }
      }
    }
    return std::nullopt;
  }

  // The node lb steps after the producer in the forward pass has its gradient about lb steps before
  // the consumer. If the forward pass ends first, there is no such chain.
  std::optional<NodeId> chain_rule(NodeId producer, NodeId consumer, std::int64_t lb) const {
    std::vector<NodeId> front{producer};
    for (std::int64_t step = 1; step <= options_.ub; ++step) {
      front = forward_readers(front);
      if (front.empty()) {
        return direct_order(producer, consumer, lb);
      }
      if (const auto found = step < lb ? std::nullopt : gradient_of(front, producer, consumer)) {
        return found;
      }
    }
    return std::nullopt;
  }

  std::vector<NodeId> forward_readers(const std::vector<NodeId>& front) const {
    std::vector<NodeId> next;
    for (const NodeId node : front) {
      std::ranges::copy_if(levels_.readers(node), std::back_inserter(next),
                           [&](NodeId reader) { return !is_backward(reader); });
    }
    std::ranges::sort(next);
    next.erase(std::unique(next.begin(), next.end()), next.end());
    return next;
  }

  // Returns one of the backward nodes that read outputs of the front, and lie between the two: the
  // original takes any; the last one shortens the stay of the copy back. It must also come before
  // the consumer in the schedule's order.
  std::optional<NodeId> gradient_of(const std::vector<NodeId>& front, NodeId producer,
                                    NodeId consumer) const {
    std::optional<NodeId> latest;
    for (const NodeId node : front) {
      for (const NodeId reader : levels_.readers(node)) {
        if (is_backward(reader) && order(producer) < order(reader) &&
            order(reader) < order(consumer) && levels_.step(reader) < levels_.step(consumer) &&
            (!latest || order(*latest) < order(reader))) {
          latest = reader;
        }
      }
    }
    return latest;
  }

  const Levels& levels_;
  const Tflms1Options& options_;
  StepId backward_;
};

class GraphEditor {
 public:
  explicit GraphEditor(const Request& request)
      : request_(request),
        options_(request.options.tflms1),
        levels_(request.graph, request.schedule),
        triggers_(levels_, options_, request.backward) {}

  Plan plan() {
    const std::int64_t n_tensors = request_.options.n_tensors;
    note("Editing model for LMS");
    note("n_tensors: " + (n_tensors < 0 ? "all tensors" : std::to_string(n_tensors)));
    note("lb: " + std::to_string(options_.lb));
    for (const Stashed& tensor : in_walk_order()) {
      if (n_tensors >= 0 && std::cmp_greater_equal(swap_outs_, n_tensors)) {
        break;
      }
      swap(tensor);
    }
    note("Edited model is valid and logically equivalent to the original one");
    note("Added " + std::to_string(swap_outs_ + swap_ins_) + " ops into the model");
    note(std::string(took_text));
    note(std::to_string(swap_outs_) + " tensors will be swapped out(in) to(from) the host");
    if (decisions_.size() < swap_ins_) {
      note(shared_copies_text(decisions_.size(), swap_ins_));
    }
    plan_.schedule = edit(request_.schedule, decisions_, request_.options.sync_mode);
    return std::move(plan_);
  }

 private:
  // Returns tensors in the order of a walk from nodes without forward inputs.
  std::vector<Stashed> in_walk_order() const {
    std::vector<std::size_t> place(request_.graph.nodes().size());
    std::vector<NodeId> queue;
    const auto meet = [&](NodeId node) {
      if (levels_.step(node) < request_.backward && place[index_of(node)] == 0) {
        queue.push_back(node);
        place[index_of(node)] = queue.size();
      }
    };
    std::ranges::for_each(levels_.at(0), meet);
    for (std::size_t i = 0; i < queue.size(); ++i) {
      std::ranges::for_each(levels_.readers(queue[i]), meet);
    }
    std::vector<Stashed> tensors = candidates(request_);
    std::ranges::stable_sort(tensors, {}, [&](const Stashed& tensor) {
      return place[index_of(levels_.node(tensor.made))];
    });
    return tensors;
  }

  void swap(const Stashed& tensor) {
    std::vector<StepId> readers = far_readers(tensor);
    note_tensor(tensor);
    SwappedTensor swapped{.tensor = tensor.tensor, .out_behind = tensor.made, .swap_ins = {}};
    for (const StepId use : tensor.uses) {
      if (!std::ranges::binary_search(readers, use)) {
        swapped.out_behind = std::max(swapped.out_behind, use);
      }
    }
    if (options_.fuse_swapins) {
      swapped.swap_ins.push_back(swap_in(tensor, std::move(readers)));
    } else {
      for (const StepId reader : readers) {
        swapped.swap_ins.push_back(swap_in(tensor, {reader}));
      }
    }
    ++swap_outs_;
    swap_ins_ += swapped.swap_ins.size();
    std::ranges::copy(one_at_a_time(std::move(swapped)), std::back_inserter(decisions_));
  }

  // Returns readers in the backward pass, and forward readers farther away than the nearest.
  std::vector<StepId> far_readers(const Stashed& tensor) const {
    const auto order = [&](StepId step) {
      return static_cast<std::int64_t>(levels_.of(levels_.node(step)));
    };
    const StepId nearest = *std::ranges::min_element(tensor.uses, {}, order);
    std::vector<StepId> readers;
    std::ranges::copy_if(tensor.uses, std::back_inserter(readers), [&](StepId use) {
      return use >= request_.backward || (options_.swap_branches && use > tensor.made &&
                                          order(use) > order(nearest) + options_.branch_threshold);
    });
    return readers;
  }

  // The trigger serves the earliest reader. Without a trigger the copy starts once the tensor is
  // out.
  SwapIn swap_in(const Stashed& tensor, std::vector<StepId> readers) {
    const NodeId consumer = levels_.node(*std::ranges::min_element(
        readers, {}, [&](StepId step) { return levels_.of(levels_.node(step)); }));
    const std::optional<NodeId> trigger = triggers_.find(levels_.node(tensor.made), consumer);
    note("Consuming op " + op_text(request_.graph, consumer) + " (order " +
             std::to_string(levels_.of(consumer)) + ") swaps in " +
             tensor_text(request_.graph, tensor.tensor),
         1);
    if (!trigger) {
      note("No control dependency op needed for swap in of op " +
               op_text(request_.graph, consumer) + ".",
           1);
    }
    if (waits_for_in(request_.options.sync_mode)) {
      return {.readers = std::move(readers), .not_before = std::nullopt};
    }
    const StepId start = trigger ? levels_.step(*trigger) : tensor.made;
    return {.readers = std::move(readers), .not_before = start};
  }

  void note_tensor(const Stashed& tensor) {
    const NodeId producer = levels_.node(tensor.made);
    note("Operation: " + op_text(request_.graph, producer) + ", order " +
             std::to_string(levels_.of(producer)) + ", type " +
             std::string(request_.graph.nodes()[index_of(producer)].op->name()),
         1);
    note("Tensor " + tensor_text(request_.graph, tensor.tensor) + " will be placed on /cpu:0", 1);
  }

  void note(std::string text, int level = 0) {
    plan_.notes.push_back({.level = level, .text = std::move(text)});
  }

  const Request& request_;
  const Tflms1Options& options_;
  Levels levels_;
  Triggers triggers_;
  std::vector<Decision> decisions_;
  std::size_t swap_outs_ = 0, swap_ins_ = 0;  // counts of the original
  Plan plan_;
};

}  // namespace

Plan tflms1(const Request& request) { return GraphEditor(request).plan(); }

}  // namespace cnn::lms
