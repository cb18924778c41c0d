#include <algorithm>
#include <optional>
#include <sstream>

#include "runtime/access.h"
#include "runtime/program.h"

namespace cnn {
namespace {

constexpr double mebi = 1024.0 * 1024.0;

class PlanText {
 public:
  explicit PlanText(const StepPlan& plan)
      : plan_(plan), graph_(*plan.graph), index_(graph_, plan.memory) {
    out_.setf(std::ios::fixed);
    out_.precision(1);
  }

  std::string text() {
    for (std::size_t s = 0; s < plan_.schedule.steps.size(); ++s) {
      step(StepId{static_cast<std::uint32_t>(s)});
    }
    totals();
    return out_.str();
  }

 private:
  // Appends "   12 compute     relu#7  relu#7 f32[2, 3] nchw @4096+24".
  void step(StepId id) {
    const Step& step = plan_.schedule.steps[index_of(id)];
    pad(std::to_string(index_of(id)), 5, true);
    out_ << " ";
    pad(std::string(name_of(step.lane)), 12, false);
    pad(to_string(graph_, step.action), 28, false);
    if (const auto* compute = std::get_if<Compute>(&step.action)) {
      for (const TensorId output : graph_.nodes()[index_of(compute->node)].outputs) {
        tensor(output, index_.tensor(output, id));
      }
      if (const Block* workspace = index_.workspace(compute->node, id)) {
        out_ << "  workspace @" << workspace->offset << "+" << workspace->bytes;
      }
    } else if (const auto* offload = std::get_if<Offload>(&step.action)) {
      tensor(offload->tensor, index_.tensor(offload->tensor, id));
    } else if (const auto* fetch = std::get_if<Fetch>(&step.action)) {
      tensor(fetch->tensor, index_.tensor(fetch->tensor, id));
    } else if (const std::optional<TensorId> moved = moved_by_disk(step.action)) {
      tensor(*moved, index_.disk(*moved));
    }
    for (std::size_t i = 0; i < step.after.size(); ++i) {
      out_ << (i == 0 ? "  after " : ", ") << index_of(step.after[i]);
    }
    out_ << "\n";
  }

  void tensor(TensorId id, const Block* block) {
    const TensorInfo& info = graph_.info(id);
    out_ << "  " << to_string(info.desc);
    if (block != nullptr && info.alias) {
      out_ << " @" << block->offset + graph_.offset_in_root(id) << " in "
           << graph_.info(info.alias->root).name;
    } else if (block != nullptr) {
      out_ << " @" << block->offset << "+" << block->bytes;
    }
  }

  void pad(const std::string& text, std::size_t width, bool right) {
    const std::string space(width - std::min(width, text.size()), ' ');
    out_ << (right ? space + text : text + space);
  }

  void totals() {
    const MemoryPlan& memory = plan_.memory;
    std::size_t workspace = 0;
    for (const KernelSpec& spec : plan_.specs) {
      workspace = std::max(workspace, spec.workspace);
    }
    const auto line = [&](const char* what, std::size_t bytes) {
      pad(what, 20, false);
      pad(std::to_string(bytes), 14, true);
      out_ << " bytes, " << static_cast<double>(bytes) / mebi << " MiB\n";
    };
    out_ << plan_.schedule.steps.size() << " steps\n";
    line("step arena", memory.device_bytes);
    line("step lower bound", memory.lower_bound_bytes);
    line("largest workspace", workspace);
    line("swapped to the host", memory.host_bytes);
    if (memory.disk_bytes > 0) {
      line("swapped to the disk", memory.disk_bytes);
    }
  }

  const StepPlan& plan_;
  const Graph& graph_;
  BlockIndex index_;
  std::ostringstream out_;
};

}  // namespace

std::string to_string(const StepPlan& plan) { return PlanText(plan).text(); }

}  // namespace cnn
