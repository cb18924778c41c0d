#include "bench/session/step_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "bench/plan/device_memory.h"
#include "bench/ranks/rank_context.h"
#include "layers/initializer.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

double number(const TensorView& view) {
  return view.desc.type == DataType::i32 ? static_cast<double>(view.as<std::int32_t>().front())
                                         : static_cast<double>(view.as<float>().front());
}

}  // namespace

std::vector<std::int32_t> fixed_labels(std::int64_t batch, std::int32_t bound, std::uint64_t seed) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
  const std::uint64_t stream = seed + layers::fnv1a("labels");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int32_t>(layers::random_bits(stream, i) %
                                          static_cast<std::uint64_t>(bound));
  }
  return labels;
}

StepRunner::StepRunner(Compiled compiled, const RankContext& context, Variables& variables,
                       ProgramMemory memory, std::unique_ptr<data::Feeder> feeder)
    : context_(context),
      variables_(variables),
      arena_(memory.arena),
      host_(memory.host),
      disk_(memory.disk),
      batch_(compiled.batch),
      feeder_(std::move(feeder)) {
  const std::shared_ptr<const Graph> graph = compiled.plan.graph;
  const std::vector<std::int32_t> fixed =
      fixed_labels(batch_, static_cast<std::int32_t>(compiled.classes - 1), graph->traits().seed);
  small_inputs_ =
      context.backend.device->allocate_host(2 * alignment + fixed.size() * sizeof(fixed[0]));
  place_inputs(*graph, fixed);
  staged_ = staged_inputs(*graph, context.backend);
  if (!staged_.empty()) {
    std::vector<TensorDesc> inputs;
    for (const std::size_t input : staged_) {
      inputs.push_back(inputs_[input].desc);
    }
    stage_ = std::make_unique<InputStage>(*context.backend.device, inputs, memory.staged);
  }
  const ExecutorOptions chosen = options(compiled.plan.memory);
  executor_.emplace(make_program(std::move(compiled.plan), context.kernels),
                    *context.backend.device, variables, arena_, chosen);
  if (compiled.prologue) {
    prologue_.emplace(
        make_program(*std::move(compiled.prologue), context.kernels), *context.backend.device,
        variables, arena_,
        ExecutorOptions{.record = false, .wait_for_each = context.backend.steps.wait_for_each});
  }
}

void StepRunner::place_inputs(const Graph& graph, std::span<const std::int32_t> fixed) {
  step_input_ = reinterpret_cast<std::int32_t*>(small_inputs_.data());
  rate_input_ = reinterpret_cast<float*>(small_inputs_.data() + alignment);
  std::byte* const labels = small_inputs_.data() + 2 * alignment;
  std::memcpy(labels, fixed.data(), fixed.size_bytes());
  for (const TensorId id : graph.inputs()) {
    const TensorInfo& info = graph.info(id);
    TensorView view{info.desc, nullptr};
    if (info.name == "global_step") {
      view.data = reinterpret_cast<std::byte*>(step_input_);
    } else if (info.name == "learning_rate") {
      view.data = reinterpret_cast<std::byte*>(rate_input_);
    } else if (info.name == "images") {
      images_ = inputs_.size();
    } else {
      check(info.name == "labels", "the graph has an unknown input " + info.name);
      labels_ = inputs_.size();
      view.data = labels;
    }
    inputs_.push_back(std::move(view));
  }
}

void StepRunner::replace_feeder(std::unique_ptr<data::Feeder> feeder) {
  if (stage_) {
    stage_->forget();
  }
  feeder_ = std::move(feeder);
}

ExecutorOptions StepRunner::options(const MemoryPlan& memory) {
  return {.record = records_ && context_.backend.steps.record,
          .must_record_exchange = context_.collective_exchange,
          .wait_for_each = context_.backend.steps.wait_for_each,
          .verify = context_.backend.steps.verify,
          .host_arena = host_.at_least(memory.host_bytes),
          .disk = disk_ == nullptr ? nullptr : disk_->at_least(memory.disk_bytes)};
}

void StepRunner::replan(StepPlan plan) {
  replaced_peak_ = std::max(replaced_peak_.value_or(0), executor_->measured_peak_bytes());
  Program program = std::move(*executor_).release();
  executor_.reset();
  program.plan = std::move(plan);
  const ExecutorOptions chosen = options(program.plan.memory);
  executor_.emplace(std::move(program), *context_.backend.device, variables_, arena_, chosen);
  for (NodeObserver* observer : observers_) {
    executor_->observe(*observer);
  }
}

void StepRunner::observe(NodeObserver& observer) {
  observers_.push_back(&observer);
  executor_->observe(observer);
}

void StepRunner::stop_recording() {
  records_ = false;
  executor_->stop_recording();
}

std::string StepRunner::take_why_not_recorded() {
  const std::string& why = executor_->why_not_recorded();
  return why.empty() || std::exchange(told_why_not_recorded_, true) ? std::string() : why;
}

void StepRunner::prepare() {
  if (prologue_) {
    prologue_->run({});
  }
}

std::size_t StepRunner::measured_peak_bytes() const {
  return std::max(executor_->measured_peak_bytes(),
                  prologue_ ? prologue_->measured_peak_bytes() : 0);
}

std::size_t StepRunner::device_bytes() const {
  return std::max(plan().memory.device_bytes,
                  prologue_ ? prologue_->plan().memory.device_bytes : 0);
}

std::size_t StepRunner::lower_bound_bytes() const {
  return std::max(plan().memory.lower_bound_bytes,
                  prologue_ ? prologue_->plan().memory.lower_bound_bytes : 0);
}

double StepRunner::feed(std::int64_t global_step, double learning_rate) {
  *step_input_ = static_cast<std::int32_t>(global_step);
  *rate_input_ = static_cast<float>(learning_rate);
  if (feeder_ == nullptr) {
    check(!images_, "the graph takes images, but nothing feeds them");
    return 0;
  }
  if (!stage_) {
    const data::Batch& batch = feeder_->next();
    feed_from(batch);
    return batch.seconds_waited;
  }
  const Clock::time_point start = Clock::now();
  if (!stage_->is_filled()) {
    stage_next();
  }
  const std::span<const TensorView> here = stage_->take();
  const double waited = seconds_since(start);
  if (feeder_->has_next()) {
    stage_next();  // overlaps the next step
  }
  for (std::size_t i = 0; i < staged_.size(); ++i) {
    inputs_[staged_[i]] = here[i];
  }
  return waited;
}

void StepRunner::feed_from(const data::Batch& batch) {
  inputs_[images_.value()].data = batch.images.data();
  inputs_[labels_.value()].data = reinterpret_cast<std::byte*>(batch.labels.data());
}

void StepRunner::stage_next() {
  feed_from(feeder_->next());
  host_batch_.clear();
  for (const std::size_t input : staged_) {
    host_batch_.push_back(inputs_[input]);
  }
  stage_->stage(host_batch_);
}

double StepRunner::result(std::string_view name) const {
  const std::span<const Output> outputs = plan().graph->outputs();
  const auto found = std::find_if(outputs.begin(), outputs.end(),
                                  [&](const Output& output) { return output.name == name; });
  if (found == outputs.end()) {
    return 0;
  }
  return number(executor_->results()[static_cast<std::size_t>(found - outputs.begin())]);
}

void StepRunner::tell(allreduce::Phase phase, std::int64_t global_step) const {
  if (context_.progress != nullptr) {
    context_.progress->store(allreduce::progress_at(phase, global_step), std::memory_order_relaxed);
  }
}

std::optional<NonFiniteTensor> StepRunner::first_non_finite() const {
  NonFiniteReader reader(*context_.backend.device);
  const Graph& graph = *plan().graph;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (const std::int64_t count = reader.count(inputs_[i]); count > 0) {
      const TensorDesc& desc = inputs_[i].desc;
      return NonFiniteTensor{.name = graph.info(graph.inputs()[i]).name,
                             .made_by = {},
                             .variable = {},
                             .count = count,
                             .elements = desc.shape.elements()};
    }
  }
  return cnn::first_non_finite({.plan = plan(), .variables = variables_, .arena = arena_}, reader);
}

StepValues StepRunner::run(std::int64_t global_step, double learning_rate, Timeline* timeline) {
  StepValues values;
  const Clock::time_point start = Clock::now();
  tell(allreduce::Phase::input, global_step);
  values.input_wait = feed(global_step, learning_rate);
  tell(allreduce::Phase::compute, global_step);
  if (timeline == nullptr) {
    executor_->run(inputs_);
  } else {
    profile_start_ = Clock::now();
    *timeline = executor_->profile(inputs_);
  }
  tell(allreduce::Phase::between, global_step);
  const std::optional<double> exposed = executor_->exposed_seconds();
  exposed_ = exposed_ && exposed ? std::optional(*exposed_ + *exposed) : std::nullopt;
  values.seconds = seconds_since(start);
  values.base_loss = result("base_loss");
  values.l2 = result("l2");
  values.top_1 = result("top_1") / static_cast<double>(batch_);
  values.top_5 = result("top_5") / static_cast<double>(batch_);
  return values;
}

}  // namespace cnn::bench
