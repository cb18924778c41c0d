#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "allreduce/limits.h"
#include "allreduce/number_all_gather.h"
#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn::allreduce {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t smallest = std::size_t{16} << 10U;

// Private memory in huge pages, which is as fast as memory can be.
class PrivateMemory {
 public:
  explicit PrivateMemory(std::size_t bytes) : bytes_(bytes) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "no memory for " + std::to_string(bytes >> 20U) +
                                    " MiB to measure its speed: " + std::strerror(errno));
    ::madvise(memory, bytes, MADV_HUGEPAGE);  // A hint: failure does no harm.
    data_ = static_cast<float*>(memory);
    std::ranges::fill(floats(), 1.0F);
  }
  ~PrivateMemory() { ::munmap(data_, bytes_); }
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;

  std::span<float> floats() const { return {data_, bytes_ / sizeof(float)}; }

 private:
  std::size_t bytes_;
  float* data_ = nullptr;
};

// Returns the working set of a rank with which the ranks of a host together exceed the last-level
// cache four times.
std::size_t beyond_caches(std::size_t ranks_of_host) {
  constexpr std::size_t usual = std::size_t{32} << 20U, most = std::size_t{128} << 20U;
  const long last = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t cache = last > 0 ? static_cast<std::size_t>(last) : usual;
  const std::size_t each = std::bit_ceil(4 * cache / ranks_of_host);
  return std::clamp(each, smallest, most);
}

// Returns a 48-bit hash that identifies the machine of this rank by its kernel and its network.
double machine_name() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code ignored;
  const std::string network = std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
  return static_cast<double>(std::hash<std::string>()(boot + network) >> 16U);
}

// Numbers the distinct names from 0 on, in the order in which they occur.
std::vector<int> numbered(std::span<const double> names) {
  std::vector<double> known;
  std::vector<int> numbers;
  for (const double name : names) {
    const auto place = std::ranges::find(known, name) - known.begin();
    numbers.push_back(static_cast<int>(place));
    if (place == std::ssize(known)) {
      known.push_back(name);
    }
  }
  return numbers;
}

class LimitProbe {
 public:
  LimitProbe(Transport& transport, const simd::Loops& loops, const Topology& topology)
      : transport_(transport), loops_(loops), numbers_(transport, loops, topology, 2) {
    const double name = machine_name();
    const std::span<const double> names = numbers_.gather({&name, 1});
    host_of_ = numbered(names);
  }

  const std::vector<int>& host_of() const { return host_of_; }
  int machines() const { return *std::ranges::max_element(host_of_) + 1; }

  // Returns the largest number of ranks on a machine.
  std::size_t max_ranks() const {
    std::size_t most = 1;
    for (int host = 0; host < machines(); ++host) {
      most = std::max(most, static_cast<std::size_t>(std::ranges::count(host_of_, host)));
    }
    return most;
  }

  std::vector<MemorySpeed> memory(const ProbeOptions& options) {
    const std::size_t largest = options.bytes > 0 ? options.bytes : beyond_caches(max_ranks());
    const PrivateMemory room(largest);
    std::vector<MemorySpeed> speeds;
    const auto sizes = static_cast<double>(std::bit_width(largest / smallest)) + 1;
    for (std::size_t bytes = std::min(smallest, largest); bytes <= largest; bytes *= 2) {
      const double speed =
          fastest(room.floats().first(bytes / sizeof(float)), options.seconds / sizes);
      speeds.push_back({static_cast<double>(bytes), speed});
    }
    // A larger working set is never faster: if it seems so, the smaller measurement was disturbed.
    for (std::size_t i = speeds.size() - 1; i-- > 0;) {
      double& speed = speeds[i].bytes_per_second;
      speed = std::max(speed, speeds[i + 1].bytes_per_second);
    }
    return speeds;
  }

  // Returns the seconds of a signal to the next rank, on another machine if there is one, by
  // sending them one after another.
  double hop() {
    constexpr int signals = 64, runs = 20;
    const int peer = previous(transport_.rank());
    const std::vector<int> group = signalled_with(transport_.rank());
    double least = std::numeric_limits<double>::infinity();
    for (int run = 0; run < runs; ++run) {
      numbers_.barrier();
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < signals; ++i) {
        transport_.arrive(group, channel);
        while (!transport_.arrived({&peer, 1}, channel)) {
          transport_.idle(peer);
        }
        transport_.busy();
      }
      const double mine = seconds_since(start) / signals;
      least = std::min(least, std::ranges::max(numbers_.gather({&mine, 1})));
    }
    return least;
  }

  // Returns the bandwidth of the fastest machine's interfaces; 0 if a machine does not report its
  // own.
  double line() {
    const double mine = interface_speed();
    const std::span<const double> all = numbers_.gather({&mine, 1});
    return std::ranges::min(all) > 0 ? std::ranges::max(all) : 0;
  }

 private:
  static constexpr std::size_t channel = 0;

  int previous(int self) const {
    const int count = transport_.ranks();
    for (int back = 1; back < count; ++back) {
      const int other = (self + count - back) % count;
      if (machines() == 1 || host_of_[index(other)] != host_of_[index(self)]) {
        return other;
      }
    }
    return self;
  }
  // Returns the rank whose signals this one awaits, and the ranks that await those of this one.
  std::vector<int> signalled_with(int self) const {
    std::vector<int> group;
    for (int other = 0; other < transport_.ranks(); ++other) {
      if (other != self && (previous(self) == other || previous(other) == self)) {
        group.push_back(other);
      }
    }
    return group;
  }
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  // Three ways to read and write each byte once: scaling in place, adding the halves to each other
  // in place, as ranks do it that share memory, and copying one half to the other. Processor and
  // size decide which is fastest.
  void update(std::span<float> floats) const {
    const simd::Operand operand{floats.data(), simd::Type::f32};
    float* const to = floats.data();
    loops_.sum({&operand, 1, &to, 1, floats.size(), false, 1.0F});
  }
  void add_halves(std::span<float> floats) const {
    const std::size_t half = floats.size() / 2;
    float* const to[] = {floats.data(), floats.data() + half};
    const simd::Operand operands[] = {{to[0], simd::Type::f32}, {to[1], simd::Type::f32}};
    loops_.sum({operands, 2, to, 2, half, false, 0.5F});
  }
  static void copy(std::span<float> floats) {
    const std::size_t half = floats.size() / 2;
    std::memcpy(floats.data() + half, floats.data(), half * sizeof(float));
  }

  double fastest(std::span<float> floats, double seconds) {
    constexpr int min_runs = 3, max_runs = 20;
    constexpr double alike = 1.05, patience = 4;  // patience: for a machine with other load
    const auto bytes = static_cast<double>(floats.size_bytes());
    double best = 0, second = 0, used = 0;
    for (int run = 0; run < max_runs && used < patience * seconds; ++run) {
      const double next = std::max({timed([&] { update(floats); }, 2 * bytes, used),
                                    timed([&] { add_halves(floats); }, 2 * bytes, used),
                                    timed([&] { copy(floats); }, bytes, used)});
      second = std::max(second, std::min(best, next));
      best = std::max(best, next);
      if (run + 1 >= min_runs && used >= seconds && best <= alike * second) {
        break;
      }
    }
    return best;
  }

  // Returns the bandwidth of a rank on the machine whose ranks together are the fastest. Adds the
  // seconds of the slowest rank to `used`, so that all ranks agree on how often they measure.
  template <class Work>
  double timed(const Work& work, double bytes, double& used) {
    constexpr double enough = 4e6;  // bytes, so that the clock can resolve their time
    const int passes = std::clamp(static_cast<int>(enough / bytes), 1, 100);
    numbers_.barrier();
    const Clock::time_point start = Clock::now();
    for (int pass = 0; pass < passes; ++pass) {
      work();
    }
    const double mine[] = {seconds_of(start), seconds_of(Clock::now())};
    const std::span<const double> all = numbers_.gather(mine);
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (int host = 0; host < machines(); ++host) {
      const double seconds = together(all, host);
      least = std::min(least, seconds);
      most = std::max(most, seconds);
    }
    used += most;
    return passes * bytes / least;
  }

  static double seconds_of(Clock::time_point time) { return in_seconds(time.time_since_epoch()); }

  // Returns the seconds from the start of the first rank of a machine to the end of its last one.
  double together(std::span<const double> all, int host) const {
    constexpr double shortest = 1e-9;
    double first = std::numeric_limits<double>::infinity(), last = 0;
    for (std::size_t rank = 0; rank < host_of_.size(); ++rank) {
      if (host_of_[rank] == host) {
        first = std::min(first, all[2 * rank]);
        last = std::max(last, all[2 * rank + 1]);
      }
    }
    return std::max(shortest, last - first);
  }

  Transport& transport_;
  const simd::Loops& loops_;
  NumberAllGather numbers_;
  std::vector<int> host_of_;
};

}  // namespace

Limits measure_limits(Transport& transport, const simd::Loops& loops, const Topology& topology,
                      const ProbeOptions& options) {
  Limits limits;
  if (topology.ranks() < 2) {
    return limits;
  }
  LimitProbe probe(transport, loops, topology);
  limits.host_of = probe.host_of();
  limits.memory = probe.memory(options);
  limits.hop = probe.hop();
  if (probe.machines() > 1) {
    limits.line = probe.line();
    limits.line_source = limits.line > 0 ? Source::interface : Source::unknown;
  }
  return limits;
}

}  // namespace cnn::allreduce
