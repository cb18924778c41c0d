#include "layers/cuda/cudnn/libraries.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "layers/cuda/cudnn/choice_text.h"
#include "runtime/cuda/stream.h"
#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn::layers::cuda {
namespace {

// The candidates that tuning measures per graph: cuDNN's heuristics rank the fastest engine among
// the first, and measuring more rarely pays.
constexpr std::size_t tuned_candidates = 12;

// The candidates for replacing an engine that fails to run.
constexpr std::size_t replacement_candidates = 40;

constexpr std::string_view no_engine = "none";       // in choices_text(): a graph without engine
constexpr std::string_view node_mark = "seconds\t";  // in choices_text(): a line with node seconds
constexpr std::string_view cached_node = "node ";    // prefix of a node's key in the plan cache

// Returns the seconds as text, rounded as the plan cache stores them.
std::string seconds_text(double seconds) {
  std::ostringstream text;
  text << seconds;
  return text.str();
}

double read_seconds(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  check(error == std::errc() && end == text.data() + text.size(),
        "another rank's seconds of a node cannot be read: " + std::string(text));
  return seconds;
}

// cuDNN loads CUDA's runtime compiler for each engine that it considers and unloads it again, 1,800
// times for a ResNet-50; relocating that library takes most of the time of planning. A reference of
// our own keeps it loaded until the process ends. cuDNN decides what to do if there is none.
void keep_runtime_compiler_loaded() {
  static const void* const handle = ::dlopen(
      ("libnvrtc.so." + std::to_string(CUDART_VERSION / 1000)).c_str(), RTLD_LAZY | RTLD_LOCAL);
  static_cast<void>(handle);
}

CudnnHandle make_cudnn() {
  cudnnHandle_t raw = nullptr;
  check_cudnn(cudnnCreate(&raw), "start");
  return CudnnHandle(raw);
}

CublasHandle make_cublas() {
  cublasLtHandle_t raw = nullptr;
  check_cublas(cublasLtCreate(&raw), "start");
  return CublasHandle(raw);
}

// Tells the user that another engine takes the place of one that does not run, for the reason
// `why`.
std::string replacement_note(const std::string& key, const Choice& failed, const Choice& next,
                             const std::string& why) {
  return "cuDNN builds " + to_string(failed) + " for " + key +
         " and does not run it: " + to_string(next) + " takes its place (" + why + ")";
}

}  // namespace

Libraries::Libraries(Machine machine, LibraryOptions options, std::optional<PlanCache> cache)
    : machine_(std::move(machine)),
      options_(std::move(options)),
      target_(Target::described(machine_.device_json)),
      cache_(std::move(cache)) {
  check(!options_.tune, "engines are timed on a device, and " + machine_.name +
                            " is only described here; leave out --tune");
  keep_runtime_compiler_loaded();
}

Libraries::Libraries(Machine machine, LibraryOptions options, Device& device,
                     std::optional<PlanCache> cache)
    : machine_(std::move(machine)),
      options_(std::move(options)),
      cudnn_(make_cudnn()),
      cublas_(make_cublas()),
      target_(Target::live(cudnn_.get())),
      cache_(std::move(cache)) {
  keep_runtime_compiler_loaded();
  if (options_.tune) {
    tuner_ = std::make_unique<Tuner>(device, cudnn_.get());
  }
}

// Returns the limits of choosable engines. A workspace may take a sixteenth of the device memory,
// far less than the activations of any practical batch.
Limits Libraries::limits(bool compiled) const {
  return {.deterministic = options_.deterministic,
          .strict_f32 = options_.strict_f32,
          .compiled = compiled,
          .workspace = machine_.memory_bytes / 16};
}

// Returns the key with the options that restrict the candidates, because a choice is valid only for
// these options.
std::string Libraries::cache_key(const std::string& key) const {
  return key + (options_.deterministic ? "" : " nondeterministic") +
         (options_.strict_f32 ? " strict" : "");
}

// Returns the key with the build of the program: nodes run kernels of ours too, and another build
// may have made them faster.
std::string Libraries::node_cache_key(const std::string& key) const {
  return cache_key(std::string(cached_node) + key) + " build " + options_.build;
}

std::optional<Choice> Libraries::choose(const std::string& key, const Build& build) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = choices_.find(key); found != choices_.end()) {
    return found->second;
  }
  std::optional<Choice> choice = find_out(key, build);
  choices_.emplace(key, choice);
  return choice;
}

std::optional<Choice> Libraries::cached(const std::string& key, const NativeGraph& graph) {
  std::optional<PlanCache::Entry> entry = cache_ ? cache_->find(cache_key(key)) : std::nullopt;
  if (!entry) {
    return std::nullopt;
  }
  try {
    // Building the plan again yields its workspace and shows that cuDNN still has the engine.
    entry->choice.workspace = Plan(graph, entry->choice).workspace();
  } catch (const Error& error) {
    notes_.push_back("plan cache: " + to_string(entry->choice) + " for " + key +
                     " is not used: " + error.what());
    return std::nullopt;
  }
  ++counts_.cached;
  return entry->choice;
}

std::string Libraries::choices_text() const {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (const auto& [key, choice] : choices_) {
    text += key + '\t' + (choice ? choice_fields(*choice) : std::string(no_engine)) + '\n';
  }
  for (const auto& [key, seconds] : node_seconds_) {
    text += key + '\t' + std::string(node_mark) + seconds_text(seconds) + '\n';
  }
  return text;
}

void Libraries::adopt(const std::string& choices) {
  const std::scoped_lock lock(mutex_);
  node_seconds_.clear();
  std::istringstream lines(choices);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = std::min(line.find('\t'), line.size() - 1);
    const std::string_view fields = std::string_view(line).substr(end + 1);
    if (fields.starts_with(node_mark)) {
      node_seconds_[line.substr(0, end)] = read_seconds(fields.substr(node_mark.size()));
      continue;
    }
    std::optional<Choice> choice;
    check(fields == no_engine || read_choice_fields(fields, choice.emplace()),
          "another rank's choices of engines cannot be read: " + line);
    adopted_[line.substr(0, end)] = std::move(choice);
  }
  drop_tuner();
  cache_.reset();
}

std::optional<Choice> Libraries::adopted(const std::string& key, const NativeGraph& graph) const {
  const std::optional<Choice>& choice = adopted_.at(key);
  if (!choice) {
    return std::nullopt;
  }
  const auto refuse = [&](const std::string& why) {
    throw Error(machine_.name + " cannot run " + to_string(*choice) + " for " + key +
                ", which rank 0 has chosen: " + why +
                "; use GPUs of one kind and the same version of cuDNN for all ranks");
  };
  try {
    if (Plan(graph, *choice).workspace() <= choice->workspace) {
      return choice;
    }
  } catch (const Error& error) {
    refuse(error.what());
  }
  refuse("it needs a larger workspace here");
  return std::nullopt;
}

std::optional<Choice> Libraries::find_out(const std::string& key, const Build& build) {
  const NativeGraph graph(build(), target_);
  if (adopted_.contains(key)) {
    ++counts_.adopted;
    return adopted(key, graph);
  }
  if (std::optional<Choice> choice = cached(key, graph)) {
    return choice;
  }
  if (std::optional<Choice> choice = timed(key, graph)) {
    return choice;
  }
  const std::vector<Choice> proposed = candidates(graph, limits(/*compiled=*/false), 1);
  if (proposed.empty()) {
    return std::nullopt;
  }
  ++counts_.guessed;
  return proposed.front();
}

// Returns the fastest choice by measurement; nothing if tuning is off or its time is used up, if
// the operands do not fit the device, or if none of the tuned engines runs.
std::optional<Choice> Libraries::timed(const std::string& key, const NativeGraph& graph) {
  if (tuner_ == nullptr) {
    return std::nullopt;
  }
  if (counts_.tuning_seconds >= options_.tune_seconds) {
    ++counts_.untimed;
    return std::nullopt;
  }
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Choice> proposed =
      candidates(graph, limits(/*compiled=*/true), tuned_candidates);
  std::optional<Tuner::Timed> best;
  try {
    best = proposed.empty() ? std::nullopt : tuner_->fastest(graph, proposed);
  } catch (const Error& error) {  // cuDNN's heuristics may know an engine that runs
    notes_.push_back("cuDNN: " + key + " is not tuned: " + error.what());
  }
  counts_.tuning_seconds += seconds_since(start);
  if (!best) {
    return std::nullopt;
  }
  if (cache_) {
    cache_->store(cache_key(key), {.choice = best->choice, .seconds = best->seconds});
  }
  ++counts_.tuned;
  return best->choice;
}

std::optional<double> Libraries::known_node_seconds(const std::string& key) {
  if (const auto found = node_seconds_.find(key); found != node_seconds_.end()) {
    return found->second;
  }
  const auto entry = cache_ ? cache_->find(node_cache_key(key)) : std::optional<PlanCache::Entry>();
  if (!entry) {
    return std::nullopt;
  }
  node_seconds_[key] = entry->seconds;
  return entry->seconds;
}

std::optional<double> Libraries::node_seconds(
    const std::string& key, const std::function<std::optional<double>()>& measure) {
  double before = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (!knows_node_seconds_) {
      return std::nullopt;
    }
    if (const std::optional<double> known = known_node_seconds(key)) {
      return known;
    }
    if (tuner_ == nullptr || counts_.tuning_seconds >= options_.tune_seconds) {
      return std::nullopt;
    }
    before = counts_.tuning_seconds;
  }
  // measure() must not run under the lock, because making the node's kernel calls choose().
  const auto start = std::chrono::steady_clock::now();
  const std::optional<double> measured = measure();
  const double took = seconds_since(start);
  const std::scoped_lock lock(mutex_);
  counts_.tuning_seconds = before + took;  // `took` includes the tuning of the node's engine
  if (!measured) {
    return std::nullopt;
  }
  const double seconds = read_seconds(seconds_text(*measured));
  if (cache_) {
    cache_->store(node_cache_key(key), {.choice = {}, .seconds = seconds});
  }
  ++counts_.timed_nodes;
  node_seconds_[key] = seconds;
  return seconds;
}

void Libraries::forget_node_seconds() {
  const std::scoped_lock lock(mutex_);
  node_seconds_.clear();
  knows_node_seconds_ = false;
}

Libraries::Ready::Ready(const Target& target, const OperationGraph& operations,
                        const Choice& chosen)
    : graph(operations, target), plan(graph, chosen), choice(chosen) {
  check(plan.workspace() <= choice.workspace,
        "cuDNN wants more workspace for " + to_string(choice) + " than when it was planned");
}

std::shared_ptr<const Plan> Libraries::plan(const std::string& key, const Build& build) {
  check(is_live(), "no kernel of cuDNN runs without a device");
  const std::optional<Choice> choice = choose(key, build);
  check(choice.has_value(), "cuDNN has no engine for " + key);
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<const Ready>& ready = plans_[key];
  if (ready == nullptr) {
    ready = std::make_shared<const Ready>(target_, build(), *choice);
  }
  return {ready, &ready->plan};
}

std::shared_ptr<const Plan> Libraries::next_plan(const std::string& key, const Build& build,
                                                 const Plan& failed, const std::string& why) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<const Ready>& ready = plans_.at(key);
  if (&ready->plan != &failed) {
    return {ready, &ready->plan};  // another node of the same graph has already replaced it
  }
  std::vector<Choice>& refused = refused_[key];
  refused.push_back(ready->choice);
  const NativeGraph graph(build(), target_);
  for (const Choice& choice : candidates(graph, limits(false), replacement_candidates)) {
    if (choice.workspace > choices_.at(key)->workspace ||
        std::ranges::find(refused, choice) != refused.end()) {
      continue;
    }
    notes_.push_back(replacement_note(key, ready->choice, choice, why));
    ready = std::make_shared<const Ready>(target_, build(), choice);
    return {ready, &ready->plan};
  }
  return nullptr;
}

cudnnHandle_t Libraries::cudnn(Stream& stream) const {
  check(is_live(), "no kernel of cuDNN runs without a device");
  check_cudnn(cudnnSetStream(cudnn_.get(), cnn::cuda::native(stream)), "change its stream");
  return cudnn_.get();
}

cublasLtHandle_t Libraries::cublas() const {
  check(is_live(), "no kernel of cuBLAS runs without a device");
  return cublas_.get();
}

Libraries::Counts Libraries::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void Libraries::stop_tuning() {
  const std::scoped_lock lock(mutex_);
  drop_tuner();
}

// The tuner's stream ends with it, so the handle must not keep it.
void Libraries::drop_tuner() {
  if (tuner_ != nullptr) {
    check_cudnn(cudnnSetStream(cudnn_.get(), nullptr), "change its stream");
    tuner_.reset();
  }
}

std::vector<std::string> Libraries::take_notes() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(notes_, {});
}

std::vector<LibraryVersion> library_versions() {
  const std::size_t running = cudnnGetVersion();
  check(running / 10000 == CUDNN_MAJOR,
        "cuDNN " + cudnn_version_text(running) + " is installed, but this program was built for " +
            cudnn_version_text(CUDNN_VERSION) + ": the major versions must agree");
  const std::size_t cublas = cublasLtGetVersion();
  return {{"cuDNN",
           cudnn_version_text(running) + " (built with " + cudnn_version_text(CUDNN_VERSION) + ")"},
          {"cuBLAS", std::to_string(cublas / 10000) + "." + std::to_string(cublas % 10000 / 100) +
                         "." + std::to_string(cublas % 100)}};
}

}  // namespace cnn::layers::cuda
