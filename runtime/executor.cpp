#include "runtime/executor.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/access.h"
#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn {

namespace {

// Returns the bytes that a step of a copy lane moves; of a node, those of the tensors that it makes
// or stores.
std::size_t copied_bytes(const Graph& graph, const Action& action) {
  if (std::holds_alternative<Compute>(action)) {
    std::size_t bytes = 0;
    for_each_access(graph, action, [&](const Access& access) {
      const bool moves =
          access.kind == Access::Kind::define || !is_persistent(graph.info(access.tensor).role);
      bytes += moves ? graph.info(access.tensor).desc.bytes() : 0;
    });
    return bytes;
  }
  if (const auto* offload = std::get_if<Offload>(&action)) {
    return graph.info(offload->tensor).desc.bytes();
  }
  const auto* fetch = std::get_if<Fetch>(&action);
  return fetch == nullptr ? 0 : graph.info(fetch->tensor).desc.bytes();
}

// Returns, for each lane, the lane whose stream issues its steps: itself or, for copy lanes with
// few bytes, compute. A lane moves as a whole, since its steps rely on their order.
std::array<Lane, lane_count> stream_lanes(const StepPlan& plan,
                                          std::size_t max_compute_stream_copy_bytes) {
  std::array<std::size_t, lane_count> copied{};
  for (const Step& step : plan.schedule.steps) {
    copied.at(static_cast<std::size_t>(step.lane)) += copied_bytes(*plan.graph, step.action);
  }
  std::array<Lane, lane_count> lanes{};
  for (std::size_t l = 0; l < lane_count; ++l) {
    const auto lane = static_cast<Lane>(l);
    const bool copies = lane == Lane::copy_in || lane == Lane::copy_out;
    lanes.at(l) = copies && copied.at(l) <= max_compute_stream_copy_bytes ? Lane::compute : lane;
  }
  return lanes;
}

// Returns whether the error is one of the step alone. The type of any other error, such as a lost
// rank, tells the program how to end.
bool is_of_step(const Error& error) {
  constexpr int plain = 1;
  return error.exit_code() == plain;
}

void check_arena(std::span<const std::byte> arena, std::size_t needed, const std::string& name) {
  if (arena.size() < needed) {
    throw Error("the " + name + " has " + std::to_string(arena.size()) + " bytes, the plan needs " +
                std::to_string(needed));
  }
  check(reinterpret_cast<std::uintptr_t>(arena.data()) % alignment == 0,
        "an arena of the executor is not aligned to 64 bytes");
}

}  // namespace

// Resolves the steps of a plan into issues.
class Executor::Resolver {
 public:
  Resolver(Executor& executor, const Variables& variables)
      : executor_(executor),
        variables_(variables),
        plan_(executor.program_.plan),
        graph_(*plan_.graph),
        index_(graph_, plan_.memory),
        result_of_(graph_.tensors().size()),
        input_of_(graph_.tensors().size()) {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      input_of_[index_of(graph_.inputs()[i])] = i;
    }
    for (std::size_t o = 0; o < graph_.outputs().size(); ++o) {
      result_of_[index_of(graph_.outputs()[o].tensor)] = executor.results_[o].data;
    }
  }

  Issue resolve(StepId id, const Action& action) const {
    Issue issue;
    if (const auto* compute = std::get_if<Compute>(&action)) {
      resolve(issue, id, *compute);
    } else if (const auto* offload = std::get_if<Offload>(&action)) {
      const TensorView view = operand(offload->tensor, id, issue);
      issue.from = view.data;
      issue.bytes = view.desc.bytes();
      issue.to = host_home(offload->tensor, id);  // null for an input: the host has it
    } else if (const auto* fetch = std::get_if<Fetch>(&action)) {
      const TensorView view = operand(fetch->tensor, id, issue);
      issue.to = view.data;
      issue.bytes = view.desc.bytes();
      issue.input = input_of_[index_of(fetch->tensor)];
      issue.from = host_home(fetch->tensor, id);
    } else if (const auto* store = std::get_if<Store>(&action)) {
      issue.from = transfer(store->tensor, id, issue);
    } else {
      issue.to = transfer(std::get<Load>(action).tensor, id, issue);
    }
    return issue;
  }

 private:
  void resolve(Issue& issue, StepId id, const Compute& compute) const {
    const Node& node = graph_.nodes()[index_of(compute.node)];
    issue.kernel = executor_.program_.kernels.at(index_of(compute.node)).get();
    issue.node = compute.node;
    for (const TensorId input : node.inputs) {
      issue.operands.in.push_back(operand(input, id, issue));
    }
    for (const TensorId output : node.outputs) {
      issue.operands.out.push_back(operand(output, id, issue));
    }
    if (const Block* block = index_.workspace(compute.node, id)) {
      issue.operands.workspace = {place(*block, issue), block->bytes};
    }
  }

  // Sets the place in the file and returns the one in host memory.
  std::byte* transfer(TensorId tensor, StepId step, Issue& issue) const {
    const Block& block = *index_.disk(tensor);
    issue.file = executor_.disk_;
    issue.file_offset = block.offset;
    issue.bytes = block.bytes;
    return host_home(tensor, step);
  }

  TensorView operand(TensorId tensor, StepId step, Issue& issue) const {
    const TensorInfo& info = graph_.info(tensor);
    if (is_persistent(info.role)) {
      return variables_.view(info);
    }
    std::byte* const root = place(*index_.tensor(tensor, step), issue);
    return {.desc = info.desc, .data = root + graph_.offset_in_root(tensor)};
  }

  std::byte* place(const Block& block, Issue& issue) const {
    issue.arena_end = std::max(issue.arena_end, block.offset + block.bytes);
    return executor_.arena_.data() + block.offset;
  }

  std::byte* host_home(TensorId tensor, StepId step) const {
    if (result_of_[index_of(tensor)] != nullptr) {
      return result_of_[index_of(tensor)];
    }
    const Block* block = index_.host(tensor, step);
    return block == nullptr ? nullptr : executor_.host_arena_.data() + block->offset;
  }

  Executor& executor_;
  const Variables& variables_;
  const StepPlan& plan_;
  const Graph& graph_;
  BlockIndex index_;
  std::vector<std::byte*> result_of_;                 // by TensorId
  std::vector<std::optional<std::size_t>> input_of_;  // by TensorId
};

Executor::Executor(Program program, Device& device, Variables& variables,
                   std::span<std::byte> arena, ExecutorOptions options)
    : program_(std::move(program)),
      device_(&device),
      records_(options.record && !options.wait_for_each && !options.verify),
      must_record_exchange_(options.must_record_exchange),
      disk_(options.disk),
      waits_for_each_(options.wait_for_each || options.verify),
      arena_(arena),
      host_arena_(options.host_arena) {
  const MemoryPlan& memory = program_.plan.memory;
  if (host_arena_.empty() && memory.host_bytes > 0) {
    own_host_arena_ = device.allocate_host(memory.host_bytes);
    host_arena_ = {own_host_arena_.data(), own_host_arena_.bytes()};
  }
  check_arena(arena_, memory.device_bytes, "arena");
  check_arena(host_arena_, memory.host_bytes, "host arena");
  check_disk();
  place_results(device);
  resolve(device, variables, options.max_compute_stream_copy_bytes);
  if (options.verify && !used_streams_.empty()) {
    watch_ = std::make_unique<MemoryWatch>(program_.plan, device, arena_, host_arena_);
  }
}

void Executor::check_disk() const {
  if (program_.plan.memory.disk_bytes > 0) {
    check(disk_ != nullptr, "the plan stores tensors on a disk, but the executor has no file");
    check(reinterpret_cast<std::uintptr_t>(host_arena_.data()) % disk_alignment == 0,
          "the host arena of a plan that stores tensors is not aligned for direct I/O");
  }
}

// Allocates one slot for each output tensor, even if it has several names.
void Executor::place_results(Device& device) {
  const Graph& graph = *program_.plan.graph;
  std::vector<std::optional<std::size_t>> slots(graph.tensors().size());
  std::size_t bytes = 0;
  for (const Output& output : graph.outputs()) {
    auto& slot = slots[index_of(output.tensor)];
    if (!slot) {
      slot = bytes;
      bytes += aligned(graph.info(output.tensor).desc.bytes());
    }
  }
  result_bytes_ = device.allocate_host(std::max(bytes, alignment));
  for (const Output& output : graph.outputs()) {
    results_.push_back({.desc = graph.info(output.tensor).desc,
                        .data = result_bytes_.data() + *slots[index_of(output.tensor)]});
  }
}

void Executor::resolve(Device& device, const Variables& variables,
                       std::size_t max_compute_stream_copy_bytes) {
  const std::vector<Step>& steps = program_.plan.schedule.steps;
  const Resolver resolver(*this, variables);
  const auto lanes = stream_lanes(program_.plan, max_compute_stream_copy_bytes);
  issues_.reserve(steps.size());
  stamps_.resize(steps.size());
  for (std::size_t s = 0; s < steps.size(); ++s) {
    Issue issue = resolver.resolve(StepId{static_cast<std::uint32_t>(s)}, steps[s].action);
    const Lane lane = lanes.at(static_cast<std::size_t>(steps[s].lane));
    auto& stream = streams_.at(static_cast<std::size_t>(lane));
    if (stream == nullptr) {
      stream = device.make_stream(lane);
    }
    issue.stream = stream.get();
    issue.lane = lane;
    for (const StepId wait : steps[s].after) {
      if (issues_.at(index_of(wait)).stream == issue.stream) {
        continue;  // one stream orders both already
      }
      Event*& done = issues_.at(index_of(wait)).done;
      if (done == nullptr) {
        events_.push_back(device.make_event());
        done = events_.back().get();
      }
      const bool exchange =
          lane == Lane::compute && steps[index_of(wait)].lane == Lane::communicate;
      (exchange ? issue.exchanges : issue.waits).push_back(done);
    }
    if (!issue.exchanges.empty()) {
      issue.exposed_wait = exposed_waits_.size();
      exposed_waits_.emplace_back();
    }
    issues_.push_back(std::move(issue));
  }
  for (const auto& stream : streams_) {
    if (stream != nullptr) {
      used_streams_.push_back(stream.get());
    }
  }
}

void Executor::observe(NodeObserver& observer) {
  observers_.push_back(&observer);
  stop_recording();
}

void Executor::run(std::span<const TensorView> inputs) {
  check_inputs(inputs);
  exposed_ = 0;
  if (records_) {
    why_not_recorded_.clear();  // left by a failed run
  }
  complete([&] {
    if (Recording* recording = recording_for(inputs)) {
      exposed_.reset();
      recording->replay(*used_streams_.front());
    } else {
      enqueue_all(inputs, nullptr, Waits::measured);
    }
  });
  if (exposed_) {
    exposed_ = sum_of_exposed();
  }
  warm_ = true;
  records_ = records_ && why_not_recorded_.empty();
}

Timeline Executor::profile(std::span<const TensorView> inputs) {
  check_inputs(inputs);
  const Clock::time_point begin = Clock::now();
  complete([&] { enqueue_all(inputs, stamps_.data(), Waits::measured); });
  exposed_ = sum_of_exposed();
  Timeline timeline;
  timeline.reserve(stamps_.size());
  for (const Stamps& stamps : stamps_) {
    timeline.push_back(
        {.start = in_seconds(stamps.start - begin), .end = in_seconds(stamps.end - begin)});
  }
  return timeline;
}

void Executor::check_inputs(std::span<const TensorView> inputs) const {
  const Graph& graph = *program_.plan.graph;
  if (inputs.size() != graph.inputs().size()) {
    throw Error("the step takes " + std::to_string(graph.inputs().size()) + " inputs, not " +
                std::to_string(inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& info = graph.info(graph.inputs()[i]);
    if (inputs[i].desc != info.desc || inputs[i].data == nullptr) {
      throw Error("input " + info.name + " must be " + to_string(info.desc) + ", not " +
                  (inputs[i].data == nullptr ? "empty" : to_string(inputs[i].desc)));
    }
  }
}

// Inputs at ever new addresses would need ever new recordings: beyond a limit, the step is enqueued
// instead.
Recording* Executor::recording_for(std::span<const TensorView> inputs) {
  if (!records_ || !warm_ || used_streams_.empty()) {
    return nullptr;
  }
  for (const Recorded& known : recorded_) {
    if (std::ranges::equal(known.inputs, inputs, {}, {}, &TensorView::data)) {
      return known.recording.get();
    }
  }
  if (recorded_.size() == max_recordings) {
    return nullptr;
  }
  std::unique_ptr<Recording> recording = record(inputs);
  if (recording == nullptr) {
    return nullptr;
  }
  Recorded& made = recorded_.emplace_back();
  std::ranges::transform(inputs, std::back_inserter(made.inputs), &TensorView::data);
  made.recording = std::move(recording);
  return made.recording.get();
}

// A library may make a call in a step that cannot be recorded, such as waiting for a stream: the
// step still runs when it is enqueued. An error of the step itself recurs there. Errors beyond this
// step, such as a lost rank, end the run.
std::unique_ptr<Recording> Executor::record(std::span<const TensorView> inputs) {
  try {
    auto recording =
        device_->record(used_streams_, [&] { enqueue_all(inputs, nullptr, Waits::unseen); });
    records_ = recording != nullptr;
    return recording;
  } catch (const Error& error) {
    if (!is_of_step(error)) {
      throw;
    }
    if (must_record_exchange_ && streams_.at(static_cast<std::size_t>(Lane::communicate))) {
      throw Error(
          error.what() + std::string("; other ranks may replay this step from a CUDA graph, "
                                     "so this one must too: try --nouse_cuda_graph"),
          error.where());
    }
    why_not_recorded_ = error.what();
    return nullptr;
  }
}

void Executor::complete(const std::function<void()>& start) {
  std::exception_ptr failure;
  try {
    start();
  } catch (...) {
    failure = std::current_exception();  // queued work must end before its memory is touched
  }
  try {
    synchronize();
  } catch (...) {
    failure = failure ? failure : std::current_exception();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

void Executor::enqueue_waits(const Issue& issue, Waits waits) {
  for (Event* wait : issue.waits) {
    issue.stream->wait(*wait);
  }
  if (issue.exchanges.empty()) {
    return;
  }
  if (waits == Waits::measured) {
    issue.stream->stamp(exposed_waits_[issue.exposed_wait].start);
  }
  for (Event* exchange : issue.exchanges) {
    issue.stream->wait(*exchange);
  }
  if (waits == Waits::measured) {
    issue.stream->stamp(exposed_waits_[issue.exposed_wait].end);
  }
}

double Executor::sum_of_exposed() const {
  Clock::duration sum{};
  for (const Stamps& wait : exposed_waits_) {
    sum += wait.end - wait.start;
  }
  return in_seconds(sum);
}

void Executor::enqueue_all(std::span<const TensorView> inputs, Stamps* stamps, Waits waits) {
  if (watch_ != nullptr) {
    watch_->begin(*used_streams_.front());
  }
  if (waits == Waits::measured && !exposed_waits_.empty()) {
    // The first stamp on a GPU waits for all work before it, so it comes before the step's work.
    used_streams_.front()->stamp(begin_);
  }
  for (std::size_t s = 0; s < issues_.size(); ++s) {
    const Issue& issue = issues_[s];
    enqueue_waits(issue, waits);
    enqueue_named(s, inputs, stamps == nullptr ? nullptr : stamps + s);
    if (issue.done != nullptr) {
      issue.stream->record(*issue.done);
    }
  }
}

void Executor::enqueue_named(std::size_t step, std::span<const TensorView> inputs, Stamps* stamps) {
  const Issue& issue = issues_[step];
  try {
    if (stamps != nullptr) {
      issue.stream->stamp(stamps->start);
    }
    enqueue(issue, inputs);
    if (stamps != nullptr) {
      issue.stream->stamp(stamps->end);
    }
    if (issue.kernel != nullptr) {
      for (NodeObserver* observer : observers_) {
        observer->enqueued(issue.node, issue.operands, issue.lane, *issue.stream);
      }
    }
    if (waits_for_each_) {
      // All streams: a copy may wait for compute, which runs while it is synchronised.
      synchronize();
    }
    if (watch_ != nullptr) {
      watch_->after(StepId{static_cast<std::uint32_t>(step)}, *used_streams_.front());
    }
  } catch (const Error& error) {
    if (!is_of_step(error)) {
      throw;
    }
    const Action& action = program_.plan.schedule.steps[step].action;
    throw Error(to_string(*program_.plan.graph, action) + ": " + error.what(), error.where());
  }
}

void Executor::enqueue(const Issue& issue, std::span<const TensorView> inputs) {
  measured_peak_ = std::max(measured_peak_, issue.arena_end);
  if (issue.kernel != nullptr) {
    issue.kernel->run(*issue.stream, issue.operands);
    return;
  }
  if (issue.file != nullptr) {
    issue.stream->host([&issue] {
      if (issue.to == nullptr) {
        issue.file->write({issue.from, issue.bytes}, issue.file_offset);
      } else {
        issue.file->read({issue.to, issue.bytes}, issue.file_offset);
      }
    });
    return;
  }
  const std::byte* from = issue.input ? inputs[*issue.input].data : issue.from;
  if (issue.to != nullptr && issue.bytes > 0) {
    issue.stream->copy(issue.to, from, issue.bytes);
  }
}

// Synchronises every stream, even after an error: each must finish its work and clear its error.
void Executor::synchronize() {
  std::exception_ptr failure;
  for (Stream* stream : used_streams_) {
    try {
      stream->synchronize();
    } catch (...) {
      failure = failure ? failure : std::current_exception();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace cnn
