#include <algorithm>
#include <optional>
#include <string>

#include "runtime/access.h"
#include "runtime/error.h"
#include "runtime/liveness.h"
#include "runtime/program.h"
#include "runtime/verify_values.h"
#include "runtime/waits.h"

// Checks a plan from first principles: shares no code with the planners except the accesses of
// steps.
namespace cnn {
namespace {

class Verifier {
 public:
  explicit Verifier(const StepPlan& plan)
      : plan_(plan), graph_(*plan.graph), steps_(plan.schedule.steps) {}

  void verify() {
    find_knowledge();
    check_data_waits();
    check_blocks();
    check_overlaps();
    check_host_blocks();
  }

 private:
  std::string name(TensorId tensor) const { return graph_.info(tensor).name; }
  std::string name(const Block& block) const {
    if (const auto* tensor = std::get_if<TensorId>(&block.owner)) {
      return name(*tensor);
    }
    return "the workspace of " + to_string(graph_, Compute{std::get<NodeId>(block.owner)});
  }
  std::string name(StepId step) const {
    const std::size_t s = index_of(step);
    return "step " + std::to_string(s) + " (" + to_string(graph_, steps_[s].action) + ")";
  }
  static StepId id(std::size_t step) { return StepId{static_cast<std::uint32_t>(step)}; }
  static std::size_t end_of(const Block& block) { return block.offset + block.bytes; }
  [[noreturn]] static void fail(const std::string& what) { throw Error("wrong plan: " + what); }

  void find_knowledge() {
    HappensBefore happens_before;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (const StepId wait : steps_[s].after) {
        if (index_of(wait) >= s) {
          fail(name(id(s)) + " waits for step " + std::to_string(index_of(wait)) +
               ", which does not come before it");
        }
      }
      known_.push_back(happens_before.add(steps_[s]));
    }
  }

  // Checks that `step` has waited for everything up to these steps of their lanes.
  void check_known(StepId step, const VectorClock& needed, const std::string& what) const {
    if (!happened_before(needed, known_[index_of(step)])) {
      fail(name(step) + " does not wait for " + what);
    }
  }

  // Checks, for each interval and each variable, that reads come after their write and before the
  // next.
  void check_data_waits() const {
    struct History {
      VectorClock written = no_steps, touched = no_steps;
    };
    std::vector<History> device(graph_.tensors().size());
    std::vector<History> host(graph_.tensors().size()), disk(graph_.tensors().size());
    const auto use = [&](History& history, StepId step, bool writes, TensorId tensor) {
      const std::size_t lane = index_of_lane(steps_[index_of(step)].lane);
      const auto now = static_cast<std::int64_t>(index_of(step));
      VectorClock before = writes ? history.touched : history.written;
      if (before[lane] == now) {
        before[lane] = -1;  // the step itself, which touches several tensors that share bytes
      }
      check_known(step, before, "the step that gives it " + name(tensor));
      history.touched[lane] = now;
      if (writes) {
        history.written = no_steps;
        history.written[lane] = now;
      }
    };
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (const Access& access : accesses(graph_, steps_[s].action)) {
        History& history = device[index_of(graph_.root_of(access.tensor))];
        if (access.kind == Access::Kind::define && !graph_.shares_bytes(access.tensor)) {
          history = {};  // other bytes: check_overlaps covers them
        }
        use(history, id(s), access.kind != Access::Kind::read, access.tensor);
      }
      if (const auto* offload = std::get_if<Offload>(&steps_[s].action)) {
        use(host[index_of(offload->tensor)], id(s), true, offload->tensor);
      } else if (const auto* fetch = std::get_if<Fetch>(&steps_[s].action)) {
        use(host[index_of(fetch->tensor)], id(s), false, fetch->tensor);
      } else if (const auto* store = std::get_if<Store>(&steps_[s].action)) {
        use(host[index_of(store->tensor)], id(s), false, store->tensor);
        use(disk[index_of(store->tensor)], id(s), true, store->tensor);
      } else if (const auto* load = std::get_if<Load>(&steps_[s].action)) {
        use(disk[index_of(load->tensor)], id(s), false, load->tensor);
        use(host[index_of(load->tensor)], id(s), true, load->tensor);
      }
    }
  }

  // Checks that every interval and every workspace has one block that is large enough, aligned and
  // inside the arena.
  void check_blocks() {
    const BlockIndex index(graph_, plan_.memory);
    touched_.assign(plan_.memory.blocks.size(), no_steps);
    const auto touch = [&](const Block& block, StepId step) {
      VectorClock& touched =
          touched_[static_cast<std::size_t>(&block - plan_.memory.blocks.data())];
      touched[index_of_lane(steps_[index_of(step)].lane)] =
          static_cast<std::int64_t>(index_of(step));
    };
    for (const LiveInterval& interval : live_intervals(graph_, plan_.schedule)) {
      const Block* block = index.tensor(interval.tensor, interval.first);
      if (block == nullptr || block->first != interval.first || block->last < interval.last ||
          block->bytes < graph_.info(interval.tensor).desc.bytes()) {
        fail("no block holds " + name(interval.tensor) + " from " + name(interval.first) + " to " +
             name(interval.last));
      }
      for (const StepId step : interval.touched_by) {
        touch(*block, step);
      }
    }
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const auto* compute = std::get_if<Compute>(&steps_[s].action);
      if (compute == nullptr || plan_.specs[index_of(compute->node)].workspace == 0) {
        continue;
      }
      const Block* block = index.workspace(compute->node, id(s));
      if (block == nullptr || block->bytes < plan_.specs[index_of(compute->node)].workspace) {
        fail("no block holds the workspace of " + name(id(s)));
      }
      touch(*block, id(s));
    }
    check_places(plan_.memory.blocks, plan_.memory.device_bytes, "arena");
    check_places(plan_.memory.host_blocks, plan_.memory.host_bytes, "host arena");
    check_places(plan_.memory.disk_blocks, plan_.memory.disk_bytes, "file");
  }

  void check_places(const std::vector<Block>& blocks, std::size_t size,
                    std::string_view arena) const {
    for (const Block& block : blocks) {
      if (block.offset % alignment != 0) {
        fail(name(block) + " lies at the unaligned offset " + std::to_string(block.offset));
      }
      if (end_of(block) > size) {
        fail(name(block) + " ends at " + std::to_string(end_of(block)) + ", beyond the " +
             std::string(arena) + " of " + std::to_string(size) + " bytes");
      }
    }
  }

  // Calls visit(earlier, later) for every two blocks that share bytes. Quadratic in the worst case,
  // but it compares only blocks that begin below the end of the other.
  template <class Visit>
  static void for_overlapping(const std::vector<Block>& blocks, Visit visit) {
    std::vector<std::size_t> order;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].bytes > 0) {
        order.push_back(b);
      }
    }
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return blocks[a].offset < blocks[b].offset; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Block& low = blocks[order[i]];
      for (std::size_t j = i + 1; j < order.size() && blocks[order[j]].offset < end_of(low); ++j) {
        const Block& high = blocks[order[j]];
        const bool low_first = std::pair(low.first, low.last) <= std::pair(high.first, high.last);
        low_first ? visit(order[i], order[j]) : visit(order[j], order[i]);
      }
    }
  }

  void check_overlaps() const {
    const std::vector<Block>& blocks = plan_.memory.blocks;
    for_overlapping(blocks, [&](std::size_t a, std::size_t b) {
      if (blocks[a].last >= blocks[b].first && !is_in_place(blocks[a], blocks[b])) {
        fail(name(blocks[a]) + " and " + name(blocks[b]) + " share bytes in " +
             name(blocks[b].first));
      }
      VectorClock before = touched_[a];
      for (std::int64_t& step : before) {
        // One step touches both blocks of an in-place pair.
        step = step == static_cast<std::int64_t>(index_of(blocks[b].first)) ? -1 : step;
      }
      if (!happened_before(before, known_[index_of(blocks[b].first)])) {
        fail(name(blocks[b].first) + " does not wait for the last use of " + name(blocks[a]) +
             ", whose bytes it takes");
      }
    });
  }

  bool is_in_place(const Block& from, const Block& to) const {
    const auto* input = std::get_if<TensorId>(&from.owner);
    const auto* output = std::get_if<TensorId>(&to.owner);
    const auto* compute = std::get_if<Compute>(&steps_[index_of(to.first)].action);
    if (input == nullptr || output == nullptr || compute == nullptr || from.last != to.first ||
        from.offset != to.offset) {
      return false;
    }
    const Node& node = graph_.nodes()[index_of(compute->node)];
    const auto read = std::find(node.inputs.begin(), node.inputs.end(), *input);
    const auto made = std::find(node.outputs.begin(), node.outputs.end(), *output);
    return read != node.inputs.end() && made != node.outputs.end() &&
           may_reuse_in_place(graph_, node, static_cast<std::size_t>(read - node.inputs.begin()),
                              static_cast<std::size_t>(made - node.outputs.begin()));
  }

  void check_host_blocks() const {
    const std::vector<Block>& blocks = plan_.memory.host_blocks;
    const BlockIndex index(graph_, plan_.memory);
    std::vector<VectorClock> touched(blocks.size(), no_steps);
    std::vector<bool> has_home(graph_.tensors().size());
    for (const Output& output : graph_.outputs()) {
      has_home[index_of(output.tensor)] = true;
    }
    const auto touch = [&](TensorId tensor, StepId step, std::size_t bytes) {
      const Block* block = index.host(tensor, step);
      if (block == nullptr || block->bytes < bytes) {
        fail("no host block holds " + name(tensor) + " in " + name(step));
      }
      touched[static_cast<std::size_t>(block - blocks.data())]
             [index_of_lane(steps_[index_of(step)].lane)] =
                 static_cast<std::int64_t>(index_of(step));
    };
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (const Access& access : accesses(graph_, steps_[s].action)) {
        const TensorInfo& info = graph_.info(access.tensor);
        if (!std::holds_alternative<Compute>(steps_[s].action) && info.role == Role::activation &&
            !has_home[index_of(access.tensor)]) {
          touch(access.tensor, id(s), info.desc.bytes());
        }
      }
      if (const std::optional<TensorId> moved = moved_by_disk(steps_[s].action)) {
        touch(*moved, id(s), transferred_bytes(*moved));
        check_transfer(id(s), *index.host(*moved, id(s)), index.disk(*moved));
      }
    }
    for_overlapping(blocks, [&](std::size_t a, std::size_t b) {
      if (blocks[a].last >= blocks[b].first) {
        fail(name(blocks[a]) + " and " + name(blocks[b]) + " share bytes on the host in " +
             name(blocks[b].first));
      }
      check_known(blocks[b].first, touched[a],
                  "the last use of the host copy of " + name(blocks[a]));
    });
    for_overlapping(plan_.memory.disk_blocks, [&](std::size_t a, std::size_t b) {
      fail(name(plan_.memory.disk_blocks[a]) + " and " + name(plan_.memory.disk_blocks[b]) +
           " share bytes on the disk");
    });
  }

  std::size_t transferred_bytes(TensorId tensor) const {
    return round_up(graph_.info(tensor).desc.bytes(), disk_alignment);
  }

  // Checks what direct I/O asks for: aligned places and whole units on both sides.
  void check_transfer(StepId step, const Block& host, const Block* disk) const {
    if (disk == nullptr || disk->bytes < transferred_bytes(std::get<TensorId>(host.owner))) {
      fail("no block of the file holds the tensor of " + name(step));
    }
    if (host.offset % disk_alignment != 0 || disk->offset % disk_alignment != 0) {
      fail(name(step) + " moves bytes at an offset that direct I/O refuses");
    }
  }

  const StepPlan& plan_;
  const Graph& graph_;
  const std::vector<Step>& steps_;
  std::vector<VectorClock> known_;    // by StepId: finished before it starts
  std::vector<VectorClock> touched_;  // by block
};

}  // namespace

void verify(const StepPlan& plan) {
  check(plan.graph != nullptr, "wrong plan: it has no graph");
  verify_values(plan);
  Verifier(plan).verify();
}

void verify(const StepPlan& plan, const Schedule& given) {
  verify(plan);
  const std::vector<Step>& steps = plan.schedule.steps;
  check(given.steps.size() == steps.size(), "wrong plan: it has not the steps of its schedule");
  HappensBefore happens_before;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (!happened_before(given_waits(given, s), happens_before.add(steps[s]))) {
      throw Error("wrong plan: step " + std::to_string(s) + " (" +
                  to_string(*plan.graph, steps[s].action) +
                  ") does not wait for what the schedule lets it wait for");
    }
  }
}

}  // namespace cnn
