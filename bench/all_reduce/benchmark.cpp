#include "bench/all_reduce/benchmark.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "bench/all_reduce/ranks.h"
#include "bench/all_reduce/reduction.h"
#include "bench/all_reduce/table.h"
#include "bench/flags/sizes.h"
#include "bench/plan/job.h"
#include "bench/ranks/exchange.h"
#include "bench/ranks/exchange_choice.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/interruption.h"
#include "bench/ranks/rank_context.h"
#include "bench/ranks/rank_exchange.h"
#include "bench/ranks/rank_nodes.h"
#include "bench/report/result_file.h"
#include "models/model.h"
#include "runtime/error.h"
#include "runtime/graph.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Runs the program on one of its ranks; rank 0 prints.
class Benchmark {
 public:
  explicit Benchmark(const ReduceRun& run)
      : config_(run.config),
        options_(run.options),
        console_(run.console),
        interruption_(run.interruption) {}

  std::vector<std::size_t> buckets;  // of the network; empty: the sizes of the options

  void run(const RankEnvironment& environment) {
    allreduce::Transport& transport = environment.transport;
    world_ = environment.world;
    const Exchange exchange = exchange_of(environment);
    const bool first = transport.rank() == 0;
    std::optional<ResultFile> file;
    if (first) {
      file.emplace(options_.json);  // before measuring: the path may be wrong
      note(exchange);
    }
    const std::vector<std::size_t> sizes = options_.sizes();
    const std::size_t most = options_.table()
                                 ? sizes.back() / sizeof(float)
                                 : std::accumulate(buckets.begin(), buckets.end(), std::size_t{0});
    Reduction reduction(environment, exchange.settings, most, interruption_);
    if (options_.table()) {
      const std::vector<ReduceRow> rows = table(reduction, exchange.settings, sizes);
      if (file && !rows.empty()) {
        file->publish(table_json(rows, exchange.settings.topology, limits_json(exchange.settings)));
      }
    } else {
      steps(reduction, exchange.settings);
    }
  }

  bool wrong = false;  // only rank 0 writes this

 private:
  // Returns the exchange; a device's exchange has already measured what it needs.
  Exchange exchange_of(const RankEnvironment& environment) const {
    if (environment.exchange != nullptr) {
      return environment.exchange->rules();
    }
    const std::size_t largest =
        options_.table() ? options_.sizes().back() / sizeof(float) : std::ranges::max(buckets);
    Exchange exchange =
        possible_exchange(config_, environment.topology, /*peers_memory=*/true, largest);
    calibrate(config_.comm, exchange.settings, environment.transport, environment.loops);
    return exchange;
  }

  void note(const Exchange& exchange) {
    for (const std::string& line : exchange.notes) {
      console_.note(line);
    }
    if (!exchange.by_device.empty()) {
      console_.note(exchange.by_device);
      return;
    }
    if (const std::string nodes = numa_text(exchange.settings.topology); !nodes.empty()) {
      console_.note("comm: " + nodes);
    }
    if (!config_.comm.print_plan) {
      console_.note("comm: " + links_text(exchange.settings));
      if (const std::string limits = limits_text(exchange.settings); !limits.empty()) {
        console_.note("comm: limits: " + limits);
      }
      return;
    }
    std::vector<std::size_t> elements = buckets;
    if (options_.table()) {
      elements = options_.sizes();
      for (std::size_t& bytes : elements) {
        bytes /= sizeof(float);
      }
    }
    for (const std::string& line : exchange_plan_lines(elements, exchange.settings)) {
      console_.note(line);
    }
  }

  // Returns the tolerance: 16-bit sums of many integers lose precision.
  static double tolerance(const allreduce::Settings& settings) {
    constexpr double largest = 8, rounding = 1.0 / 128;
    const double ranks = settings.topology.ranks();
    return settings.wire == allreduce::Wire::f32 || ranks <= 32 ? 0 : largest * ranks * rounding;
  }

  std::vector<ReduceRow> table(Reduction& reduction, const allreduce::Settings& settings,
                               const std::vector<std::size_t>& sizes) {
    const int ranks = settings.topology.ranks();
    reduction.reserve(sizes.back() / sizeof(float));
    std::vector<ReduceRow> rows;
    for (const std::size_t bytes : sizes) {
      std::optional<ReduceRow> row = row_of(reduction, settings, bytes);
      if (!row) {
        break;
      }
      rows.push_back(*std::move(row));
      if (!reduction.first()) {
        continue;
      }
      if (rows.size() == 1) {
        console_.print(table_header(rows.back()));
      }
      console_.print(table_line(rows.back(), ranks));
    }
    if (reduction.first() && !rows.empty()) {
      console_.print(table_end(rows, ranks));
      wrong = std::ranges::any_of(rows, &ReduceRow::wrong);
    }
    return rows;
  }

  // Measures one row of the table; returns nothing if the run stops.
  std::optional<ReduceRow> row_of(Reduction& reduction, const allreduce::Settings& settings,
                                  std::size_t bytes) {
    ReduceRow row{.bytes = bytes, .tolerance = tolerance(settings)};
    reduction.add_bucket(bytes / sizeof(float));
    const double before = reduction.error();  // this call also chooses the algorithm
    const std::vector<Timing> times = timings(reduction, bytes);
    if (times.empty()) {
      return std::nullopt;
    }
    row.time = times[0];
    allreduce::Limits limits = settings.limits;
    if (copies(reduction)) {
      row.copy = times[1];
      seen_in_memory(limits, settings.topology, bytes, std::min(times[1].least, times[2].least));
    }
    if (options_.compare) {
      row.mpi = times.back();
    }
    row.by = reduction.choice(0);
    row.bound = allreduce::lower_bound(limits, bytes / sizeof(float), settings.wire);
    if (options_.check) {
      row.error = worse_of(before, reduction.error());
    }
    reduction.remove_buckets();
    return row;
  }

  // Returns whether to time host copies, which give no information on device memory.
  bool copies(const Reduction& reduction) const {
    return options_.copies && !reduction.on_device();
  }

  // Returns the seconds of the reduction and, if requested, of copying and updating as many bytes,
  // and of MPI.
  std::vector<Timing> timings(Reduction& reduction, std::size_t bytes) {
    const std::size_t elements = bytes / sizeof(float);
    const Copy copy(copies(reduction) ? elements : 0);
    const Update update(reduction.loops(), copies(reduction) ? elements : 0);
    std::vector<float> theirs(options_.compare ? elements : 0);
    InterleavedTiming timing{.warm_up = options_.warm_up,
                             .rounds = options_.iterations,
                             .repetitions = repetitions(bytes),
                             .candidates = {[&] { reduction.reduce(); }}};
    if (copies(reduction)) {
      timing.candidates.emplace_back([&] { copy(); });
      timing.candidates.emplace_back([&] { update(); });
    }
    if (options_.compare) {
      timing.candidates.emplace_back([&] { world_->all_reduce(theirs); });
    }
    return reduction.time(timing);
  }

  // Raises the memory limit to the speed in the same rounds as the reduction, because the machine
  // may have been busy during calibration.
  static void seen_in_memory(allreduce::Limits& limits, const allreduce::Topology& topology,
                             std::size_t bytes, double seconds) {
    const double moved = 2 * static_cast<double>(bytes);
    const double speed =
        std::max(allreduce::memory_speed(limits, static_cast<double>(bytes)), moved / seconds);
    limits.memory = {{static_cast<double>(bytes), speed}};
    if (limits.host_of.empty()) {
      limits.host_of = topology.host_of;
    }
  }

  // Reduces a network's gradients one after another, like the original's program.
  void steps(Reduction& reduction, const allreduce::Settings& settings) {
    for (const std::size_t elements : buckets) {
      reduction.add_bucket(elements);
    }
    bool right = check(reduction, settings);
    say(reduction, "Done building all-reduce ops");
    say(reduction, "Running warmup");
    const std::int64_t warm_up =
        warm_up_batches(config_.size.warm_up_batches, config_.size.autotune_threshold);
    const std::int64_t count = std::max(config_.size.length.batches.value_or(100), 1);
    for (std::int64_t i = 0; i < warm_up && !reduction.stops(); ++i) {
      step(reduction);
    }
    say(reduction, "Running all-reduce ops");
    const Clock::time_point start = Clock::now();
    const auto average = [&](std::int64_t done) {
      return seconds_since(start) / static_cast<double>(done);
    };
    std::int64_t done = 0;
    for (; done < count && !reduction.stops(); ++done) {
      if (done > 0 && done % config_.report.display_every == 0) {
        say(reduction, fmt::format("Iteration: {}. Average time per step so far: {:.9f}", done,
                                   average(done)));
      }
      step(reduction);
    }
    if (done > 0) {
      say(reduction, fmt::format("Average time per step: {:.9f}", average(done)));
    }
    right = check(reduction, settings) && right;
    wrong = reduction.first() ? !right : wrong;
  }
  void step(Reduction& reduction) const {
    for (int i = 0; i < options_.per_step; ++i) {
      reduction.reduce();
    }
    reduction.agree();
  }
  bool check(Reduction& reduction, const allreduce::Settings& settings) {
    if (!options_.check) {
      return true;
    }
    const double error = reduction.error();
    const bool right = error <= tolerance(settings);
    if (!right && reduction.first()) {
      console_.note(fmt::format(
          "all_reduce_benchmark: sums of gradients are wrong by up to {:g}; the allowed error is "
          "{:g}",
          error, tolerance(settings)));
    }
    return right;
  }
  void say(const Reduction& reduction, const std::string& line) {
    if (reduction.first()) {
      console_.print(line);
    }
  }

  const Config& config_;
  const ReduceOptions& options_;
  Console& console_;
  Interruption& interruption_;
  allreduce::World* world_ = nullptr;  // set with processes; threads do not use it
};

}  // namespace

std::vector<std::size_t> gradient_buckets(const Config& config, const Backend& backend) {
  const RankContext context = only_rank(backend);
  const Job job = make_job(config, context);
  Graph graph({.training = true, .compute = job.compute});
  const Value images = graph.state(
      "images", {{1, job.model->channels, job.image_size, job.image_size}, job.compute}, {}, false);
  models::logits(*job.model, images);
  std::vector<std::size_t> bytes;
  for (const TensorInfo& info : graph.tensors()) {
    if (info.role == Role::parameter) {
      bytes.push_back(static_cast<std::size_t>(info.desc.shape.elements()) * sizeof(float));
    }
  }
  std::ranges::reverse(bytes);
  std::vector<std::size_t> elements;
  std::size_t begin = 0;
  for (const std::size_t end : layers::cut_buckets(bytes, bucket_sizes(config.comm))) {
    elements.push_back(std::accumulate(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                       bytes.begin() + static_cast<std::ptrdiff_t>(end),
                                       std::size_t{0}) /
                       sizeof(float));
    begin = end;
  }
  return elements;
}

namespace {

// Returns the bytes of memory that a rank shares with others; the system allocates pages on first
// use.
std::size_t segment_bytes_of(const ReduceOptions& options) {
  constexpr std::size_t beside = std::size_t{1} << 30U;
  return beside + (options.table() ? 4 * options.sizes().back() : beside);
}

}  // namespace

int run_reductions(const ReduceRun& run, const Backend& backend) {
  check(!run.options.compare, "--compare=mpi needs mpirun: mpirun -np N all_reduce_benchmark ...");
  run.interruption.follow_others();
  Benchmark benchmark(run);
  if (!run.options.table()) {
    run.console.print("Building all-reduce ops");
    benchmark.buckets = gradient_buckets(run.config, backend);
  }
  const bool on_device = backend.device_exchange != nullptr;
  run_as_threads(run.config, backend,
                 on_device ? segment_bytes_of(run.options) : backend.memory.device,
                 [&](const RankEnvironment& environment) { benchmark.run(environment); });
  return benchmark.wrong ? 1 : 0;
}

int run_reductions(const ReduceRun& run, const std::function<Backend(const Config&)>& make_backend,
                   allreduce::World& world) {
  const ReduceOptions& options = run.options;
  check(!options.compare || options.table(),
        "--compare=mpi is for the table of sizes: give -b or -e");
  run.interruption.follow_others();
  Benchmark benchmark(run);
  const auto make = [&](const Config& placed) {
    Backend backend = make_backend(placed);
    if (world.rank() == 0) {
      run.console.note("device: " + backend.description);
    }
    if (!options.table()) {
      benchmark.buckets = gradient_buckets(run.config, backend);
    }
    return backend;
  };
  if (!options.table() && world.rank() == 0) {
    run.console.print("Building all-reduce ops");
  }
  run_as_process(run.config, world, segment_bytes_of(options), make,
                 [&](const RankEnvironment& environment) { benchmark.run(environment); });
  return benchmark.wrong ? 1 : 0;
}

}  // namespace cnn::bench
