#include "bench/session/session.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "bench/plan/fitting.h"
#include "bench/plan/lms_refusal.h"
#include "bench/plan/lms_step.h"
#include "bench/plan/training_ranks.h"
#include "bench/ranks/rank_context.h"
#include "bench/session/input.h"
#include "bench/session/memory_refusal.h"
#include "bench/session/out_of_memory.h"
#include "data/checkpoint.h"
#include "layers/update_rule.h"
#include "runtime/checkpoint_layout.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// Returns the variables of a checkpoint by name: their order in a step depends on how updates are
// joined, which depends on the memory.
std::vector<const Variable*> saved_variables(const Variables& variables) {
  std::vector<const Variable*> saved;
  for (const Variable& variable : variables.all()) {
    if (variable.info.saved) {
      saved.push_back(&variable);
    }
  }
  std::ranges::sort(saved, {}, [](const Variable* v) { return std::string_view(v->info.name); });
  return saved;
}

// Returns whether the variable is a running average of a rank's own batches.
bool is_statistic(const Variable& variable) {
  const std::string& name = variable.info.name;
  return name.ends_with("/moving_mean") || name.ends_with("/moving_variance");
}

std::string ranks_text(int ranks) {
  return ranks == 1 ? std::string("1 rank") : fmt::format("{} ranks", ranks);
}

std::vector<data::NamedTensor> named(std::span<const Variable* const> variables) {
  std::vector<data::NamedTensor> tensors;
  for (const Variable* variable : variables) {
    tensors.push_back(
        {.name = variable->info.name,
         .shape = checkpoint_shape(variable->info),
         .required = variable->info.role == Role::parameter || is_statistic(*variable)});
  }
  return tensors;
}

// Returns the sizes of the plan if there is one.
Sizes sizes_by(const Job& job, const std::string& plan) {
  const Sizes sizes = sizes_of(job);
  return plan.empty() ? sizes : with_plan(sizes, read_plan_sizes(plan));
}

}  // namespace

Session::Session(const Job& job, const RankContext& context, const std::string& plan_of_first)
    : Session(job, context, plan_of_first, sizes_by(job, plan_of_first)) {}

Session::Session(const Job& job, const RankContext& context, const std::string& plan_of_first,
                 const Sizes& sizes)
    : job_(job),
      context_(context),
      plan_bucket_bytes_(sizes.bucket_bytes),
      programs_(programs_that_fit(job, context, sizes)) {
  const Compiled& first = programs_.main ? *programs_.main : programs_.evaluation.value();
  facts_ = first.facts;
  layout_ = first.layout;
  fusion_ = first.fusion;
  norms_ = first.norms;
  variables_.emplace(programs_.variables());
  memory_ = device_memory(programs_, context);
  if (job.config->lms.enabled && job.trains()) {
    plan_lms(plan_of_first);
  }
  if (const std::string refusal = memory_refusal(job_, programs_, memory_, context_);
      !refusal.empty()) {
    throw DoesNotFit(refusal);
  }
  reserved_arena_ = memory_.arena;
  // Only the first of several ranks may have a plan file: all ranks reserve the same arena.
  if (lms_ && lms_->report().necessary && (lms_->report().file.empty() || job.ranks > 1)) {
    reserved_arena_ = std::max(reserved_arena_, lms_->limits().device);
  }
}

void Session::plan_lms(const std::string& plan_of_first) {
  const LmsFlags& flags = job_.config->lms;
  if (flags.plan_out && plan_of_first.empty()) {
    plan_out_.emplace(*flags.plan_out);
  }
  if (!plan_of_first.empty()) {
    unlimited_ = programs_.main.value().plan;
    lms_.emplace(*job_.config, context_, memory_, programs_.main.value().slicing);
    programs_.main->plan = plan_like(plan_of_first, false);
  } else if (flags.plan_file) {
    plan_from(*flags.plan_file);
  } else {
    LmsStep step = plan_step(job_, context_, sizes_of(job_), std::move(programs_));
    programs_ = std::move(step.programs);
    unlimited_ = std::move(step.unlimited);
    lms_.emplace(std::move(step.planner));
    if (step.bucket_bytes) {
      plan_bucket_bytes_ = step.bucket_bytes;
    }
  }
  variables_.emplace(programs_.variables());
  memory_ = device_memory(programs_, context_);
  // Evaluation and transfers of variables reuse the same arena.
  if (!lms_->report().fits || memory_.total() > lms_->budget()) {
    throw DoesNotFit(refusal_with_lms());
  }
  save_plan();
}

std::string Session::refusal_with_lms() const {
  const LmsFlags& flags = job_.config->lms;
  const std::string evaluation = evaluation_refusal(job_, programs_, memory_, *lms_);
  const bool trains = evaluation.empty();  // what does not fit is the training
  return fmt::format(
      "{}\n{} with {}={} does not fit with --lms: {}{}{}",
      tensorflow_oom_line(trains ? plan() : programs_.evaluation.value().plan,
                          lms_->limits().device, context_.backend.name != "cpu"),
      job_.model->name, trains ? "--batch_size" : "--eval_batch_size",
      trains ? job_.batch.per_device : job_.eval_batch.per_device,
      trains ? lms_refusal(*lms_, plan(), memory_.total(), flags, context_) : evaluation,
      trains ? slices_advice(job_, lms_->report().slicing) : "",
      trains && !flags.plan_file ? "; " + largest_batch_text(job_, context_, true) : "");
}

void Session::plan_from(const std::string& file) {
  StepPlan& plan = programs_.main.value().plan;
  unlimited_ = plan;
  lms_.emplace(*job_.config, context_, memory_, programs_.main.value().slicing);
  lms_->use(load_plan(file, origin(), *plan.graph), file);
  plan = lms_->plan(*unlimited_, expected_costs(), false);
}

PlanOrigin Session::origin() const {
  const Config& config = *job_.config;
  return {.facts = {{"model", std::string(job_.model->name)},
                    {"data_set", std::string(job_.model->data_set)},
                    {"data", job_.input.synthetic ? "synthetic" : "real"},
                    {"image_size", std::to_string(job_.image_size)},
                    {"batch_size", std::to_string(job_.batch.per_device)},
                    {"precision", std::string(name_of(job_.compute))},
                    {"layout", std::string(name_of(layout_))},
                    {"fusion", std::string(name_of(fusion_))},
                    {"optimizer", std::string(layers::row_of(config.optimizer.rule).name)}},
          .graph = hash_of(*unlimited_->graph)};
}

StepPlan Session::plan_like(const std::string& plan_of_first, bool measured) {
  try {
    lms_->use(read_plan(plan_of_first, origin(), *unlimited_->graph));
    return lms_->plan(*unlimited_, expected_costs(), measured);
  } catch (const Error& error) {
    throw Error(fmt::format("--lms: this rank cannot go by the plan of rank 0: {}", error.what()));
  }
}

SavedPlan Session::saved_plan() const {
  SavedPlan plan = lms_->latest();
  plan.bucket_bytes = plan_bucket_bytes_.value_or(default_bucket_bytes());
  return plan;
}

Costs Session::expected_costs() const {
  return bench::expected_costs(*unlimited_, context_.backend);
}

std::string Session::plan_text() const {
  return bench::plan_json(saved_plan(), origin(), *unlimited_->graph).dump();
}

void Session::save_plan() const {
  if (plan_out_) {
    plan_out_->write(saved_plan(), origin(), *unlimited_->graph);
  }
}

bool Session::replan(const Costs& costs) {
  if (!lms_ || !lms_->report().necessary || !lms_->report().file.empty()) {
    return false;
  }
  const LmsReport before = lms_->report();
  const double present = end_of(simulate(main_->plan(), costs));
  std::optional<StepPlan> next = lms_->replan(*unlimited_, costs);
  if (!next) {
    return false;  // the loop of steps sees the signal and ends the run
  }
  if (lms_->report().fits && lms_->report().predicted_seconds < present) {
    save_plan();
    adopt(std::move(*next));
    return true;
  }
  lms_->keep(before, main_->plan(), costs);
  return false;
}

void Session::follow(const std::string& plan) {
  StepPlan next = plan_like(plan, true);
  if (!lms_->report().fits) {
    throw DoesNotFit(lms_refusal(*lms_, next, lms_->report().peak, job_.config->lms, context_));
  }
  adopt(std::move(next));
}

void Session::adopt(StepPlan next) {
  if (const std::size_t bytes = next.memory.device_bytes; bytes > prefaulted_arena_) {
    prefault(arena().subspan(prefaulted_arena_, bytes - prefaulted_arena_));
    prefaulted_arena_ = bytes;
  }
  memory_.host = memory_.host_variables + next.memory.host_bytes;
  main_->replan(std::move(next));
  memory_.arena = memory_.arena_lower_bound = variable_io_bytes(context_.kernels, *variables_);
  for (const std::optional<StepRunner>* runner : {&main_, &evaluation_}) {
    if (*runner) {
      memory_.arena = std::max(memory_.arena, (*runner)->device_bytes());
      memory_.arena_lower_bound =
          std::max(memory_.arena_lower_bound, (*runner)->lower_bound_bytes());
    }
  }
}

std::int64_t Session::largest_batch() const {
  return bench::largest_batch(job_, context_, /*with_lms=*/false);
}

void Session::allocate() {
  const std::size_t bytes =
      std::max<std::size_t>(memory_.variables + memory_.staged + reserved_arena_, alignment);
  storage_ = context_.shared_memory ? context_.shared_memory(bytes)
                                    : context_.backend.device->allocate(bytes);
  prefault({storage_.data(), memory_.total()});
  prefaulted_arena_ = memory_.arena;
  disk_.emplace(context_.backend.disk);
  // Direct I/O needs aligned memory; the arena ends at a guard page.
  host_.emplace(*context_.backend.device, context_.backend.disk ? disk_alignment : alignment);
  prefault(host_->at_least(memory_.host - memory_.host_variables));
  if (memory_.host_variables > 0) {
    host_variables_ = context_.backend.device->allocate_host(memory_.host_variables);
    prefault({host_variables_.data(), host_variables_.bytes()});
  }
  variables_->attach(storage_.data(), host_variables_.data());
  io_.emplace(*context_.backend.device, context_.kernels, *variables_, arena());
  io_->initialize(static_cast<std::uint64_t>(job_.config->seed));
}

void Session::prefault(std::span<std::byte> memory) const {
  if (!context_.backend.prefault) {
    return;
  }
  try {
    context_.backend.prefault(memory);
  } catch (const DoesNotFit& problem) {
    throw DoesNotFit(
        fmt::format("{}\n{} with {}: {}",
                    tensorflow_oom_line(plan(), memory_.arena, context_.backend.name != "cpu"),
                    job_.model->name, batch_flag(job_, programs_), problem.what()));
  }
}

std::span<std::byte> Session::arena() const {
  return {storage_.data() + memory_.variables + memory_.staged, reserved_arena_};
}

ProgramMemory Session::memory_of(const Compiled& program, std::size_t staged_before) {
  return {.arena = arena(),
          .staged = {storage_.data() + memory_.variables + staged_before,
                     staged_bytes(*program.plan.graph, context_.backend)},
          .host = host_.value(),
          .disk = &disk_.value()};
}

std::optional<Restored> Session::restore(const std::string& folder_or_path) {
  const std::optional<std::filesystem::path> path = data::find_newest(folder_or_path, &notices_);
  if (!path) {
    return std::nullopt;
  }
  const std::vector<const Variable*> saved = saved_variables(*variables_);
  std::vector<float> values;
  const auto sink = [&](std::size_t index, std::span<const float> from) {
    values.resize(from.size());
    from_checkpoint_layout(saved[index]->info, from, values);
    io_->write(*saved[index], values);
  };
  const data::Purpose purpose = job_.trains() ? data::Purpose::training : data::Purpose::evaluation;
  const data::Loaded loaded = data::load(*path, named(saved), sink, purpose);
  notices_.insert(notices_.end(), loaded.notices.begin(), loaded.notices.end());
  if (job_.trains() && loaded.ranks != training_ranks(job_)) {
    notices_.push_back(fmt::format(
        "{} was trained by {} until here and goes on with {}: data go on at example {} x {}",
        path->filename().string(), ranks_text(loaded.ranks), ranks_text(training_ranks(job_)),
        loaded.global_step, examples_per_step(job_)));
  }
  prepare();
  return Restored{.path = path->string(), .global_step = loaded.global_step};
}

std::string Session::save(std::int64_t global_step) {
  const std::vector<const Variable*> saved = saved_variables(*variables_);
  std::vector<float> values;
  std::vector<float> ordered;
  const auto source = [&](std::size_t index) {
    const Variable& variable = *saved[index];
    const auto count = static_cast<std::size_t>(variable.info.desc.shape.elements());
    values.resize(count);
    ordered.resize(count);
    io_->read(variable, values);
    to_checkpoint_layout(variable.info, values, ordered);
    return std::span<const float>(ordered);
  };
  return data::save(save_options(global_step), named(saved), source).string();
}

data::SaveOptions Session::save_options(std::int64_t global_step) const {
  return {.train_dir = job_.config->checkpoint.train_dir.value(),
          .global_step = global_step,
          .max_to_keep = job_.config->checkpoint.max_to_keep,
          .ranks = training_ranks(job_)};
}

void Session::snapshot(std::int64_t global_step, VariableSnapshot& into) {
  const std::vector<const Variable*> saved = saved_variables(*variables_);
  into.options = save_options(global_step);
  into.tensors = named(saved);
  into.values.resize(saved.size());
  std::vector<float> values;
  for (std::size_t index = 0; index < saved.size(); ++index) {
    const Variable& variable = *saved[index];
    values.resize(static_cast<std::size_t>(variable.info.desc.shape.elements()));
    into.values[index].resize(values.size());
    io_->read(variable, values);
    to_checkpoint_layout(variable.info, values, into.values[index]);
  }
}

std::size_t Session::snapshot_bytes() const {
  std::size_t bytes = 0;
  for (const Variable* const variable : saved_variables(*variables_)) {
    bytes += static_cast<std::size_t>(variable->info.desc.shape.elements()) * sizeof(float);
  }
  return bytes;
}

void Session::change_saved(Which which, const std::function<void(std::span<float>)>& change) {
  std::vector<float> values;
  for (const Variable* variable : saved_variables(*variables_)) {
    if (which == Which::all || is_statistic(*variable)) {
      values.resize(static_cast<std::size_t>(variable->info.desc.shape.elements()));
      io_->read(*variable, values);
      change(values);
      io_->write(*variable, values);
    }
  }
  prepare();
}

void Session::read_saved(const std::function<bool(const TensorInfo&)>& wanted,
                         const ReadVariable& tell) {
  std::vector<float> values;
  for (const Variable* variable : saved_variables(*variables_)) {
    if (wanted(variable->info)) {
      values.resize(static_cast<std::size_t>(variable->info.desc.shape.elements()));
      io_->read(*variable, values);
      tell(variable->info, values);
    }
  }
}

// Computes FNV-1a over the bits of each value.
std::uint64_t Session::weights_hash() {
  std::uint64_t hash = 0xcbf29ce484222325U;
  std::vector<float> values;
  for (const Variable* variable : saved_variables(*variables_)) {
    if (!is_statistic(*variable)) {
      values.resize(static_cast<std::size_t>(variable->info.desc.shape.elements()));
      io_->read(*variable, values);
      for (const float value : values) {
        hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3U;
      }
    }
  }
  return hash;
}

std::unique_ptr<data::Feeder> Session::feed(Phase phase, std::int64_t first_step) const {
  return make_feeder(job_, context_, phase, first_step);
}

void Session::start(std::int64_t global_step) {
  std::size_t staged = 0;
  if (auto program = std::exchange(programs_.main, std::nullopt)) {
    const ProgramMemory memory = memory_of(*program, staged);
    staged += memory.staged.size();
    main_.emplace(*std::move(program), context_, *variables_, memory,
                  feed(main_phase(job_), global_step));
  }
  if (auto program = std::exchange(programs_.evaluation, std::nullopt)) {
    const ProgramMemory memory = memory_of(*program, staged);
    evaluation_.emplace(*std::move(program), context_, *variables_, memory, nullptr);
  }
  prepare();
}

// Called after variables were written outside of the steps.
void Session::prepare() {
  for (std::optional<StepRunner>* runner : {&main_, &evaluation_}) {
    if (*runner) {
      (*runner)->prepare();
    }
  }
}

StepRunner& Session::evaluation() {
  StepRunner& runner = evaluation_.value();
  runner.replace_feeder(feed(Phase::evaluation, 0));
  return runner;
}

const StepPlan& Session::plan() const {
  if (main_ || evaluation_) {
    return main_ ? main_->plan() : evaluation_->plan();
  }
  return programs_.main ? programs_.main->plan : programs_.evaluation->plan;
}

Json Session::plan_json() const {
  return {{"layout", name_of(layout_)},
          {"precision", context_.backend.precision},
          {"fusion",
           {{"reached", name_of(fusion_)},
            {"fused_norms", norms_.fused},
            {"plain_norms", norms_.plain},
            {"faster_plain_norms", norms_.faster_plain}}},
          {"arena_bytes", memory_.total()},
          {"variable_bytes", memory_.variables + memory_.staged},
          {"lower_bound_bytes", memory_.lower_bound()},
          {"host_bytes", plan().memory.host_bytes},
          {"workspace_bytes", workspace_bytes()},
          {"predicted_step_seconds", nullptr},
          {"lms", lms_ ? lms_json(lms_->report()) : Json(nullptr)}};
}

std::size_t Session::workspace_bytes() const {
  std::size_t largest = 0;
  for (const KernelSpec& spec : plan().specs) {
    largest = std::max(largest, spec.workspace);
  }
  return largest;
}

std::size_t Session::measured_peak_bytes() const {
  std::size_t peak = io_ ? io_->measured_peak_bytes() : 0;
  for (const std::optional<StepRunner>* runner : {&main_, &evaluation_}) {
    if (*runner) {
      peak = std::max(peak, (*runner)->measured_peak_bytes());
    }
  }
  return variables_->bytes() + memory_.staged + peak;
}

std::size_t Session::measured_step_peak_bytes() const {
  return variables_->bytes() + memory_.staged + main_.value().measured_peak_bytes();
}

std::optional<std::size_t> Session::replaced_peak_bytes() const {
  const std::optional<std::size_t> peak = main_ ? main_->replaced_peak_bytes() : std::nullopt;
  return peak ? std::optional(variables_->bytes() + memory_.staged + *peak) : std::nullopt;
}

std::vector<std::string> Session::take_notes() {
  std::vector<std::string> notes;
  for (std::optional<StepRunner>* runner : {&main_, &evaluation_}) {
    const std::string why = *runner ? (*runner)->take_why_not_recorded() : std::string();
    if (!why.empty()) {
      notes.push_back(fmt::format(
          "{} are enqueued kernel by kernel, not replayed from a CUDA graph, and may be "
          "slower: {}",
          runner == &main_ ? "steps" : "steps of the evaluation", why));
    }
  }
  return notes;
}

}  // namespace cnn::bench
