// TFLMS version 2, as in WML-CE 1.6: a tensor leaves for readers that are farther than a threshold
// from its producer; its copies back are triggered some levels ahead, one for each group of
// readers; compute may wait for copies. A memory simulator finds the parameters that the user
// leaves open. T. D. Le et al., "Automatic GPU Memory Management for Large Neural Models in
// TensorFlow", 2019, and its module of 2019. It considers bytes but no times. Its rule for untuned
// copies back (each after the previous one) is unreachable and omitted: open parameters are always
// tuned.

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lms/level_simulator.h"
#include "lms/level_swaps.h"
#include "lms/level_tuner.h"
#include "lms/levels.h"
#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/python_text.h"
#include "lms/stash.h"
#include "lms/swap_ins.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

std::string text(std::int64_t number) { return std::to_string(number); }
std::string text(SyncMode mode) { return std::to_string(static_cast<int>(mode)); }

std::string meaning(SyncMode mode) {
  constexpr const char* texts[] = {
      "Asynchronous memory copy between host and device",
      "Synchronous memory copy from device to host, but asynchronous memory copy from host to "
      "device",
      "Asynchronous memory copy from device to host, but synchronous memory copy from host to "
      "device",
      "Synchronous memory copy between host and device"};
  return texts[static_cast<std::size_t>(mode)];
}

class ScheduleEditor {
 public:
  explicit ScheduleEditor(const Request& request)
      : request_(request),
        levels_(request.graph, request.schedule),
        tensors_(candidates(request)),
        swaps_(request, levels_, tensors_) {}

  Plan plan() {
    const Tflms2Options& given = request_.options.tflms2;
    check(given.swapout_threshold != 0,
          "swapout_threshold is 0: it must be -1 (automatic) or more than 0");
    check(given.swapin_ahead != 0, "swapin_ahead is 0: it must be -1 (automatic) or more than 0");
    LevelParameters parameters{.threshold = given.swapout_threshold,
                               .ahead = given.swapin_ahead,
                               .groupby = given.swapin_groupby,
                               .sync = request_.options.sync_mode};
    note("Editing model for LMS");
    note_graph();
    const bool tunes = is_open(parameters);
    if (tunes && !tune(parameters)) {
      note("LMS is not necessary. Turned LMS off.");
      plan_.schedule = request_.schedule;
      return std::move(plan_);
    }
    note_parameters(parameters, tunes);
    swap(parameters);
    return std::move(plan_);
  }

 private:
  // Copies back that compute waits for have no trigger and no groups.
  static bool is_open(const LevelParameters& p) {
    return p.threshold < 0 || (!waits_for_in(p.sync) && (p.ahead < 0 || p.groupby < 0));
  }

  // Returns false if the step fits unchanged.
  bool tune(LevelParameters& parameters) {
    note(
        "Searching values for parameters: swapout_threshold, swapin_ahead, swapin_groupby and "
        "sync_mode.");
    note("[Simulator] Available memory for simulation: " + gib_text(simulated_bytes(request_)) +
         " GiB (memory ratio: " + python_text(request_.options.tflms2.simulated_share) + ")");
    note("[Simulator] Available CPU memory for simulation: " + gib_text(host_limit()) + " GiB");
    const LevelSimulator simulator(request_, levels_, swaps_);
    const LevelTuner tuner(simulator, static_cast<std::int64_t>(levels_.count()),
                           [&](const LevelParameters& found, const auto& outcome) {
                             note_found(found, outcome.host_bytes);
                           });
    if (tuner.is_unnecessary(parameters) && fits(request_, request_.schedule)) {
      return false;
    }
    const LevelParameters given = std::exchange(parameters, tuner.tune(parameters));
    if (!fits(request_, edited(parameters))) {
      parameters = placed(given).value_or(parameters);
    }
    return true;
  }

  // Returns parameters with which the step fits although the simulator, which ignores workspaces,
  // found none. Nothing: there are none.
  std::optional<LevelParameters> placed(const LevelParameters& given) {
    const std::optional<LevelParameters> found =
        tune_by_placement(given, static_cast<std::int64_t>(levels_.count()),
                          [this](const LevelParameters& p) { return fits_when_placed(p); });
    if (found) {
      note("The simulator counts no workspaces. Found by placing the step in memory: " +
           parameters_text(*found));
    }
    return found;
  }

  // The threshold decides which readers are near, and so the rest of a swap. Neighbouring
  // thresholds often move the same tensors, which are not placed again.
  bool fits_when_placed(const LevelParameters& parameters) {
    const std::vector<LevelSwap> swaps = swaps_.find(parameters);
    std::vector<std::pair<const Stashed*, std::size_t>> moved;
    std::ranges::transform(swaps, std::back_inserter(moved), [](const LevelSwap& swap) {
      return std::pair(swap.tensor, swap.near.size());
    });
    if (parameters.sync == placed_sync_ && moved == placed_) {
      return false;  // else it would have been the last
    }
    placed_sync_ = parameters.sync;
    placed_ = std::move(moved);
    const Schedule schedule =
        edit(request_.schedule, decisions_of(swaps, parameters.sync), parameters.sync);
    return peak_memory(request_.graph, schedule, workspaces_of(request_)).device_bytes <=
               request_.budget.device &&
           fits(request_, schedule);
  }

  std::uint64_t host_limit() const { return request_.budget.swap_bytes(); }

  void note_found(const LevelParameters& p, std::uint64_t host_bytes) {
    const std::string warning = host_bytes >= host_limit()
                                    ? " (Warning: likely to exceed host memory limit. " +
                                          gib_text(host_bytes) + " GiB required)"
                                    : "";
    note("[Simulator] Found a parameter set: " + parameters_text(p) + warning);
  }

  static std::string parameters_text(const LevelParameters& p) {
    return "swapout_threshold " + text(p.threshold) + ", swapin_ahead " + text(p.ahead) +
           ", swapin_groupby " + text(p.groupby) + ", sync_mode " + text(p.sync);
  }

  void note_graph() {
    const Graph& graph = request_.graph;
    note("The graph has " + std::to_string(graph.nodes().size()) + " vertices and " +
         std::to_string(levels_.edges()) + " edges.");
    note("The graph has " + mib_text(request_.variable_bytes) + " MiB of learning parameters");
    std::size_t most = 0;
    std::optional<NodeId> largest;
    for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
      if (const std::size_t bytes = operand_bytes(graph.nodes()[n]); bytes > most) {
        most = bytes;
        largest = NodeId{n};
      }
    }
    if (largest) {
      note("The largest GPU operation is " + op_text(graph, *largest) + " consuming " +
           gib_text(most) + " GiB");
    }
    note("Original categorized topological sort has " + std::to_string(levels_.count()) +
         " levels");
  }

  std::size_t operand_bytes(const Node& node) const {
    std::size_t bytes = 0;
    for (const auto* operands : {&node.inputs, &node.outputs}) {
      for (const TensorId tensor : *operands) {
        bytes += request_.graph.info(tensor).desc.bytes();
      }
    }
    return bytes;
  }

  void note_parameters(const LevelParameters& p, bool tuned) {
    note(tuned ? "LMS will use the latest parameter set found by Simulator for the best "
                 "performance. However, if you encounter an out-of-memory error, please manually "
                 "use the previous parameter set found by Simulator."
               : "LMS will use the following parameter set:");
    const std::string ignored =
        waits_for_in(p.sync) ? " (ignored since sync_mode is " + text(p.sync) + ")" : "";
    note("  sync_mode: " + text(p.sync) + " (" + meaning(p.sync) + ")");
    note("  swapout_threshold: " + text(p.threshold));
    note("  swapin_ahead: " + text(p.ahead) + ignored);
    note("  swapin_groupby: " + text(p.groupby) + ignored);
  }

  void swap(const LevelParameters& parameters) {
    std::size_t outs = 0, ins = 0;
    std::uint64_t bytes_out = 0, bytes_in = 0;
    const std::vector<LevelSwap> swaps = swaps_.find(parameters);
    for (const LevelSwap& swap : swaps) {
      note_swap(swap);
      ++outs;
      ins += swap.groups.size();
      bytes_out += swap.tensor->bytes;
      bytes_in += swap.tensor->bytes * swap.groups.size();
    }
    const std::vector<Decision> decisions = decisions_of(swaps, parameters.sync);
    note("Added " + std::to_string(outs + ins) + " operations to the model (" +
         std::to_string(outs) + " swap-out operations (" + gib_text(bytes_out) + " GiB) and " +
         std::to_string(ins) + " swap-in operations (" + gib_text(bytes_in) + " GiB))");
    note(std::string(took_text));
    if (decisions.size() < ins) {
      note(shared_copies_text(decisions.size(), ins));
    }
    plan_.schedule = edit(request_.schedule, decisions, parameters.sync);
  }

  std::vector<Decision> decisions_of(const std::vector<LevelSwap>& swaps, SyncMode sync) const {
    std::vector<Decision> decisions;
    for (const LevelSwap& swap : swaps) {
      std::ranges::copy(one_at_a_time(swapped(swap, waits_for_in(sync))),
                        std::back_inserter(decisions));
    }
    return decisions;
  }

  Schedule edited(const LevelParameters& parameters) const {
    return edit(request_.schedule, decisions_of(swaps_.find(parameters), parameters.sync),
                parameters.sync);
  }

  void note_swap(const LevelSwap& swap) {
    const std::string tensor = tensor_text(request_.graph, swap.tensor->tensor) + " (shape: " +
                               to_string(request_.graph.info(swap.tensor->tensor).desc.shape) + ")";
    note("Operation: " + op_text(request_.graph, levels_.node(swap.tensor->made)), 1);
    note("  Swap-out: Tensor " + tensor, 1);
    for (const ReaderGroup& group : swap.groups) {
      note("  Swap-in: Tensor " + tensor, 1);
      for (const NodeId reader : group.readers) {
        note("    Connect: " + tensor_text(request_.graph, swap.tensor->tensor) + " => " +
                 op_text(request_.graph, reader),
             1);
      }
    }
  }

  // waits: each copy back comes right before its first reader.
  SwappedTensor swapped(const LevelSwap& swap, bool waits) const {
    SwappedTensor swapped{
        .tensor = swap.tensor->tensor, .out_behind = swap.tensor->made, .swap_ins = {}};
    for (const NodeId reader : swap.near) {
      swapped.out_behind = std::max(swapped.out_behind, levels_.step(reader));
    }
    for (const ReaderGroup& group : swap.groups) {
      SwapIn in;
      std::ranges::transform(group.readers, std::back_inserter(in.readers),
                             [&](NodeId reader) { return levels_.step(reader); });
      std::ranges::sort(in.readers);
      if (!waits) {
        in.not_before = group.trigger ? std::optional(levels_.step(*group.trigger))
                                      : rest_is_there(group.readers.front(), swap.tensor->tensor);
      }
      swapped.swap_ins.push_back(std::move(in));
    }
    return swapped;
  }

  // Returns when the last other input of this node exists.
  std::optional<StepId> rest_is_there(NodeId reader, TensorId tensor) const {
    std::optional<StepId> last;
    for (const TensorId input : request_.graph.nodes()[index_of(reader)].inputs) {
      const std::optional<NodeId> producer = request_.graph.producer(input);
      if (producer && request_.graph.root_of(input) != tensor) {
        last = std::max(last.value_or(StepId{0}), levels_.step(*producer));
      }
    }
    return last;
  }

  void note(std::string text, int level = 0) {
    plan_.notes.push_back({.level = level, .text = std::move(text)});
  }

  const Request& request_;
  Levels levels_;
  std::vector<Stashed> tensors_;
  LevelSwaps swaps_;
  // The sync mode of the latest placement, and the tensors that left, each with its near readers.
  std::optional<SyncMode> placed_sync_;
  std::vector<std::pair<const Stashed*, std::size_t>> placed_;
  Plan plan_;
};

}  // namespace

Plan tflms2(const Request& request) { return ScheduleEditor(request).plan(); }

}  // namespace cnn::lms
