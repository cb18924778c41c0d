#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/simd/table.h"
#include "allreduce/step_list.h"
#include "allreduce/transport.h"

// The speeds of the hardware under an exchange, and the lower bound that follows from them. They
// are measured without the step lists of any all-reduce, so that no all-reduce is compared with
// itself.
namespace cnn::allreduce {

// How a number was found.
enum class Source : std::uint8_t {
  unknown,    // nobody has looked
  assumed,    // a usual value
  measured,   // timed in this run, or in the run that wrote the calibration file
  interface,  // what the system says of the network interface
  flag,       // what the user says
  derived     // it follows from another measured number
};
std::string_view source_name(Source source);  // "measured"

// How each speed of Links was found.
struct LinkSources {
  Source rank = Source::assumed, host = Source::assumed, memory = Source::assumed;
  Source remote_memory = Source::assumed;
};

// How fast each rank reads and writes memory while all ranks of its host do the same.
struct MemorySpeed {
  double bytes = 0;             // that each rank goes through again and again
  double bytes_per_second = 0;  // of each rank, reads and writes together
};

struct Limits {
  std::vector<int> host_of = {};  // by rank: the machine; ranks that one kernel runs share one
  std::vector<MemorySpeed> memory = {};  // by ascending bytes; empty: unknown
  double line = 0;  // bytes per second out of a machine, and into it; 0: unknown
  Source line_source = Source::unknown;
  double hop = 0;  // seconds until another rank notices a signal; 0: unknown

  bool known() const { return !memory.empty(); }
};

// The resource that limits an exchange, and the seconds that no all-reduce can fall below.
struct Bound {
  double seconds = 0;
  std::string_view by = "nothing";  // "memory", "line" or "latency"
  Source source = Source::unknown;
};

// Every rank reads its own buffer and writes the result, which takes memory bandwidth wherever the
// bytes travel. A machine sends and receives 2 (N-1)/N of a buffer over its line, and a signal has
// to reach another rank. Limits that are unknown do not count.
Bound lower_bound(const Limits& limits, std::size_t elements, Wire wire);

// The speed of memory for buffers of so many bytes a rank; 0: unknown. Smaller buffers are never
// slower, so the largest measured size that is not above this one counts.
double memory_speed(const Limits& limits, double bytes);

// The sum of the speeds of this host's network interfaces in bytes per second: of those that are
// up and belong to a device, and of InfiniBand ports. 0: one of them does not tell, or there are
// none. root: of the system's files.
double interface_speed(const std::filesystem::path& root = "/");

struct ProbeOptions {
  double seconds = 0.3;   // that the measurement of memory may take, about
  std::size_t bytes = 0;  // of the largest buffer of a rank; 0: beyond the caches
};

// Measures memory with buffers from 16 KiB to beyond the caches, all ranks at once, and the time of
// a signal; asks the system for the speed of the line, which stays 0 where it does not tell. All
// ranks call it together and get the same. Throws PeerLost.
Limits measure_limits(Transport& transport, const simd::Loops& loops, const Topology& topology,
                      const ProbeOptions& options = {});

}  // namespace cnn::allreduce
