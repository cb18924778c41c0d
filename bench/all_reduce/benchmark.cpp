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
#include "bench/report/result_file.h"
#include "bench/run/exchange.h"
#include "bench/run/exchange_choice.h"
#include "bench/run/exchange_flags.h"
#include "bench/run/interruption.h"
#include "bench/run/job.h"
#include "models/model.h"
#include "runtime/error.h"
#include "runtime/graph.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

// One run of the program, as one of its ranks sees it; rank 0 prints.
class Benchmark {
 public:
  explicit Benchmark(const ReduceRun& run)
      : config_(run.config),
        options_(run.options),
        console_(run.console),
        interruption_(run.interruption) {}

  std::vector<std::size_t> buckets;  // of the network; empty: the sizes of the options

  void run(const RankPlace& place) {
    allreduce::Transport& transport = place.transport;
    const allreduce::simd::Loops& loops = place.loops;
    world_ = place.world;
    const std::size_t largest =
        options_.table() ? options_.sizes().back() / sizeof(float) : std::ranges::max(buckets);
    Exchange exchange = possible_exchange(config_, place.topology, /*peers_memory=*/true, largest);
    calibrate(config_.comm, exchange.settings, transport, loops);
    const bool first = transport.rank() == 0;
    if (first) {
      note(exchange);
    }
    const std::vector<std::size_t> sizes = options_.sizes();
    const std::size_t most = options_.table()
                                 ? sizes.back() / sizeof(float)
                                 : std::accumulate(buckets.begin(), buckets.end(), std::size_t{0});
    Reduction reduction(place, exchange.settings, most, interruption_);
    if (options_.table()) {
      table(reduction, exchange.settings, sizes);
    } else {
      steps(reduction, exchange.settings);
    }
  }

  bool wrong = false;  // rank 0 alone writes it

 private:
  void note(const Exchange& exchange) {
    for (const std::string& line : exchange.notes) {
      console_.note(line);
    }
    if (!config_.comm.print_plan) {
      console_.note("comm: " + links_text(exchange.settings));
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

  // Whole numbers of 16 bits lose some where many of them are added.
  static double tolerance(const allreduce::Settings& settings) {
    constexpr double largest = 8, rounding = 1.0 / 128;
    const double ranks = settings.topology.ranks();
    return settings.wire == allreduce::Wire::f32 || ranks <= 32 ? 0 : largest * ranks * rounding;
  }

  void table(Reduction& reduction, const allreduce::Settings& settings,
             const std::vector<std::size_t>& sizes) {
    const int ranks = settings.topology.ranks();
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
      ResultFile(options_.json).publish(table_json(rows, ranks));
    }
  }

  // Nothing if the run stops.
  std::optional<ReduceRow> row_of(Reduction& reduction, const allreduce::Settings& settings,
                                  std::size_t bytes) {
    ReduceRow row{.bytes = bytes, .tolerance = tolerance(settings)};
    reduction.add_bucket(bytes / sizeof(float));
    const double before = reduction.error();  // chooses the algorithm too
    const Copy copy(options_.copies ? bytes / sizeof(float) : 0);
    Contest contest{.warm_up = options_.warm_up,
                    .rounds = options_.iterations,
                    .in_a_row = in_a_row(bytes),
                    .contestants = {[&] { reduction.reduce(); }}};
    if (options_.copies) {
      contest.contestants.emplace_back([&] { copy(); });
    }
    std::vector<float> theirs(options_.compare ? bytes / sizeof(float) : 0);
    if (options_.compare) {
      contest.contestants.emplace_back([&] { world_->all_reduce(theirs); });
    }
    const std::vector<Timing> times = reduction.time(contest);
    if (times.empty()) {
      return std::nullopt;
    }
    row.time = times[0];
    if (options_.copies) {
      row.copy = times[1];
    }
    if (options_.compare) {
      row.mpi = times.back();
    }
    row.by = reduction.choice(0);
    const std::size_t elements = bytes / sizeof(float);
    const double sent = static_cast<double>(elements * allreduce::size_of(settings.wire));
    row.bound = allreduce::bound(settings.topology, sent, settings.links, settings.peers_memory);
    if (options_.check) {
      const double after = reduction.error();
      row.error = after <= before ? before : after;
    }
    reduction.remove_buckets();
    return row;
  }

  // As the original's program: the reductions of a network's gradients, one after another.
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
      return std::chrono::duration<double>(Clock::now() - start).count() /
             static_cast<double>(done);
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
  allreduce::World* world_ = nullptr;  // with processes; threads do not use it
};

}  // namespace

std::vector<std::size_t> gradient_buckets(const Config& config, const Backend& backend) {
  const Job job = make_job(config, backend);
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

int run_reductions(const ReduceRun& run, const Backend& backend) {
  check(!run.options.compare, "--compare=mpi needs mpirun: mpirun -np N all_reduce_benchmark ...");
  run.interruption.follow_others();
  Benchmark benchmark(run);
  if (!run.options.table()) {
    run.console.print("Building all-reduce ops");
    benchmark.buckets = gradient_buckets(run.config, backend);
  }
  run_as_threads(run.config, backend, backend.memory_limit,
                 [&](const RankPlace& place) { benchmark.run(place); });
  return benchmark.wrong ? 1 : 0;
}

int run_reductions(const ReduceRun& run, const std::function<Backend()>& make_backend,
                   allreduce::World& world) {
  const ReduceOptions& options = run.options;
  check(!options.compare || options.table(),
        "--compare=mpi is for the table of sizes: give -b or -e");
  run.interruption.follow_others();
  Benchmark benchmark(run);
  const auto make = [&] {
    Backend backend = make_backend();
    if (!options.table()) {
      benchmark.buckets = gradient_buckets(run.config, backend);
    }
    return backend;
  };
  if (!options.table() && world.rank() == 0) {
    run.console.print("Building all-reduce ops");
  }
  constexpr std::size_t beside = std::size_t{1} << 30U;  // taken where it is used
  const std::size_t room = beside + (options.table() ? 4 * options.sizes().back() : beside);
  run_as_process(run.config, world, room, make,
                 [&](const RankPlace& place) { benchmark.run(place); });
  return benchmark.wrong ? 1 : 0;
}

}  // namespace cnn::bench
