#include "bench/machine/ceilings.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "bench/machine/disturbance_watch.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/initializer.h"
#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double mib = 1024 * 1024;

// One op with its own operands, ready to run repeatedly.
class Bench {
 public:
  Bench(const Backend& backend, const Op& op, const std::vector<TensorDesc>& in, Layout image)
      : stream_(backend.device->make_stream(Lane::compute)) {
    Signature request{.in = in, .out = op.infer(in)};
    for (TensorDesc& desc : request.out) {
      desc.layout = desc.shape.rank() == 4 ? image : Layout::nchw;
    }
    const std::optional<KernelSpec> spec = backend.kernels.resolve(op, request);
    check(spec.has_value(), "no kernel measures " + std::string(op.name()));
    kernel_ = backend.kernels.make(op, {.in = spec->in, .out = spec->out});
    for (const TensorDesc& desc : spec->in) {
      operands_.in.push_back(view(*backend.device, desc));
    }
    for (const TensorDesc& desc : spec->out) {
      operands_.out.push_back(view(*backend.device, desc));
    }
    const TensorView workspace =
        view(*backend.device, {Shape{static_cast<std::int64_t>(spec->workspace)}, DataType::u8});
    operands_.workspace = {workspace.data, spec->workspace};
  }

  // Returns the bytes of an operand as the kernel takes it, which may have a smaller type than
  // requested.
  double input_bytes(std::size_t input) const {
    return static_cast<double>(operands_.in[input].desc.bytes());
  }
  double output_bytes() const { return static_cast<double>(operands_.out.front().desc.bytes()); }

  struct Best {
    double seconds = 0;
    bool agreed = false;
  };
  // Returns the best seconds of one run: repeats until two runs agree, or the budget is spent.
  Best best(double budget_seconds) {
    constexpr double min_seconds = 1e-3;  // between two waits for the device
    run(1);
    const int times = static_cast<int>(std::clamp(min_seconds / run(1), 1.0, 1000.0));
    const Clock::time_point start = Clock::now();
    std::vector<double> seconds{run(times)};
    while (seconds_since(start) < budget_seconds &&
           !(best_two_agree(seconds) && seconds_since(start) > budget_seconds / 3)) {
      seconds.push_back(run(times));
    }
    return {.seconds = std::ranges::min(seconds), .agreed = best_two_agree(seconds)};
  }

 private:
  double run(int times) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < times; ++i) {
      kernel_->run(*stream_, operands_);
    }
    stream_->synchronize();
    return seconds_since(start) / times;
  }

  // Returns random values in (-1, 1) for every layout: the exponent bits of each 16-bit half are
  // bounded. The values repeat, as generating them takes longer than copying.
  TensorView view(Device& device, const TensorDesc& desc) {
    const std::size_t bytes = std::max<std::size_t>(desc.bytes(), 64);
    buffers_.push_back(device.allocate(bytes));
    std::vector<std::uint16_t> halves(std::min<std::size_t>(bytes / 2 + 1, 1 << 19));
    for (std::size_t i = 0; i < halves.size(); ++i) {
      halves[i] = static_cast<std::uint16_t>(0x3e00U | (layers::random_bits(1, i) & 0x81ffU));
    }
    const std::size_t block = 2 * halves.size();
    for (std::size_t done = 0; done < bytes; done += block) {
      stream_->copy(buffers_.back().data() + done,
                    reinterpret_cast<const std::byte*>(halves.data()),
                    std::min(block, bytes - done));
    }
    stream_->synchronize();
    return {desc, buffers_.back().data()};
  }

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Buffer> buffers_;
  Operands operands_;
};

// All measurements of a device.
class Measurement {
 public:
  Measurement(const Backend& backend, DataType compute) : backend_(backend), compute_(compute) {}

  Ceilings run() {
    const auto free = static_cast<double>(backend_.device->memory_bytes());
    const std::optional<double> set = memory_set_bytes(wanted_bytes(), largest_cache(), free);
    if (!set) {
      throw Error(fmt::format("half of the {:.0f} MiB that are free is too little", free / mib));
    }
    Ceilings ceilings{.flops_per_second = flops_per_second(free / 2),
                      .bytes_per_second = bytes_per_second(*set)};
    double faster = ceilings.bytes_per_second;
    for (std::size_t i = std::min(backend_.processors.caches.size(), ceilings.caches.size());
         i-- > 0;) {
      const auto size = static_cast<double>(backend_.processors.caches[i]);
      faster = std::max(faster, bytes_per_second(size / 2));
      ceilings.caches.at(i) = {.bytes = size, .bytes_per_second = faster};
    }
    return ceilings;
  }

  bool agreed() const { return agreed_; }

 private:
  double element_bytes() const {
    return static_cast<double>(TensorDesc{Shape{1}, compute_}.bytes());
  }
  double largest_cache() const {
    return backend_.processors.caches.empty()
               ? 0
               : static_cast<double>(backend_.processors.caches.back());
  }
  double wanted_bytes() const {
    const double images = 2 * static_cast<double>(backend_.ceiling_work.images) * 64 * 64 * 64;
    return std::max(images * element_bytes(), std::min(4 * largest_cache(), 1024 * mib));
  }

  double seconds(Bench& bench, double budget) {
    const Bench::Best best = bench.best(budget);
    agreed_ = agreed_ && best.agreed;
    return best.seconds;
  }

  double product_seconds(std::int64_t side, double budget) {
    const layers::Dense op({.bias = false, .relu = false});
    Bench bench(backend_, op, {{Shape{side, side}, compute_}, {Shape{side, side}, DataType::f32}},
                Layout::nchw);
    return seconds(bench, budget);
  }

  // Returns the rate of a product whose matrices fit in that memory, small enough not to exhaust
  // the time budget with slow kernels.
  double flops_per_second(double memory) {
    constexpr std::int64_t small = 256;
    constexpr double longest = 0.08;
    const double fits = std::sqrt(memory / (4 * sizeof(float)));
    const double in_time = small * std::cbrt(longest / product_seconds(small, 0.005));
    const double request = static_cast<double>(backend_.ceiling_work.matrix_side);
    const auto side =
        64 * std::max<std::int64_t>(
                 static_cast<std::int64_t>(std::min({request, fits, in_time}) / 64), 1);
    return 2.0 * static_cast<double>(side * side * side) / product_seconds(side, 0.2);
  }

  // Returns the better rate of copying and of reading weights for a product with one row.
  double bytes_per_second(double set) {
    constexpr double budget = 0.06;
    const Layout layout = backend_.preferred_layout(compute_);
    const double image_bytes = 64 * 16 * 16 * element_bytes();
    const TensorDesc images{
        Shape{std::max<std::int64_t>(static_cast<std::int64_t>(set / 2 / image_bytes), 1), 64, 16,
              16},
        compute_, layout};
    return std::max(copy_speed(images, layout, budget),
                    read_speed(static_cast<std::int64_t>(set), budget));
  }

  double copy_speed(const TensorDesc& images, Layout layout, double budget) {
    const layers::Scale op(0.5F);
    Bench bench(backend_, op, {images}, layout);
    return (bench.input_bytes(0) + bench.output_bytes()) / seconds(bench, budget);
  }

  double read_speed(std::int64_t set, double budget) {
    const layers::Dense op({.bias = false, .relu = false});
    // The kernel may take weights of a smaller type, so that as many bytes need more rows.
    const std::int64_t some = 16;
    const double row = Bench(backend_, op, weights_of(some), Layout::nchw).input_bytes(1) / some;
    const auto rows = static_cast<std::int64_t>(static_cast<double>(set) / row);
    Bench bench(backend_, op, weights_of(std::max(rows, some)), Layout::nchw);
    return bench.input_bytes(1) / seconds(bench, budget);
  }

  // Returns the operands of a product of one row with weights of so many rows.
  std::vector<TensorDesc> weights_of(std::int64_t rows) const {
    constexpr std::int64_t columns = 1024;
    return {{Shape{1, rows}, compute_}, {Shape{rows, columns}, DataType::f32}};
  }

  const Backend& backend_;
  DataType compute_;
  bool agreed_ = true;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

}  // namespace

bool best_two_agree(std::span<const double> seconds) {
  constexpr double difference = 0.02;
  if (seconds.size() < 2) {
    return false;
  }
  std::vector<double> sorted(seconds.begin(), seconds.end());
  std::ranges::partial_sort(sorted, sorted.begin() + 2);
  return sorted[1] <= sorted[0] * (1 + difference);
}

std::optional<double> memory_set_bytes(double wanted, double largest_cache, double free) {
  const double least = std::max(wanted / 8, 2 * largest_cache);
  const double set = std::min(wanted, free / 2);
  return set < least ? std::nullopt : std::optional(set);
}

MeasuredCeilings measure_ceilings(const Backend& backend, DataType compute) {
  MeasuredCeilings result;
  try {
    DisturbanceWatch watch(SystemCounters(backend.processors.cpus), 1);
    watch.resume();
    const Clock::time_point start = Clock::now();
    Measurement measurement(backend, compute);
    result.ceilings = measurement.run();
    watch.add_step(seconds_since(start));
    std::vector<std::string> causes = watch.finish().front().causes.names();
    if (!measurement.agreed()) {
      causes.emplace_back("times that did not repeat");
    }
    if (!causes.empty()) {
      result.notes.push_back(
          fmt::format("speed: the device's ceilings were measured on a disturbed machine ({}), "
                      "they may be too low",
                      joined(causes)));
    }
  } catch (const std::exception& error) {
    result.ceilings.reset();
    result.notes.push_back(
        fmt::format("speed: the device's ceilings were not measured: {}", error.what()));
  }
  return result;
}

}  // namespace cnn::bench
