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

// The limits of the hardware under an exchange, and the lower bound (roofline) that follows from
// them. They are measured without any step list, so that no all-reduce is compared with itself.
namespace cnn::allreduce {

// The origin of a number.
enum class Source : std::uint8_t {
  unknown,    // not looked for
  assumed,    // a typical value
  measured,   // timed in this run, or in the run that wrote the calibration file
  interface,  // reported by the system for the network interface
  flag,       // set by a flag
  derived     // computed from another measured number
};
// Returns the name, such as "measured".
std::string_view source_name(Source source);

// The origin of each speed of Links.
struct LinkSources {
  Source rank = Source::assumed, host = Source::assumed, memory = Source::assumed;
  Source remote_memory = Source::assumed;
};

// The memory bandwidth of each rank while all ranks of its host use the memory.
struct MemorySpeed {
  double bytes = 0;             // the working set of each rank
  double bytes_per_second = 0;  // reads plus writes of each rank
};

struct Limits {
  std::vector<int> host_of = {};         // by rank: the machine that runs it, from 0
  std::vector<MemorySpeed> memory = {};  // by ascending working set; empty: unknown
  double line = 0;                       // bandwidth of a machine in each direction; 0: unknown
  Source line_source = Source::unknown;
  double hop = 0;  // seconds for a signal to reach another rank; 0: unknown

  bool known() const { return !memory.empty(); }
};

// A lower bound of the time of an all-reduce, and the resource from which it follows.
struct Bound {
  double seconds = 0;
  std::string_view by = "nothing";  // "memory", "line" or "latency"
  Source source = Source::unknown;
};

// Returns the lower bound. Every rank reads its buffer and writes the result, which takes memory
// bandwidth wherever the bytes travel. A machine sends and receives 2 (N-1)/N of a buffer over its
// line, and a signal must reach another rank. Unknown limits do not count.
Bound lower_bound(const Limits& limits, std::size_t elements, Wire wire);

// Returns the memory bandwidth for a working set of so many bytes; 0: unknown. It is that of the
// largest measured size that is not above, as a smaller working set is never slower.
double memory_speed(const Limits& limits, double bytes);

// Returns the total bandwidth, in bytes per second, of this host's InfiniBand ports and of its
// network interfaces that are up and belong to a device; 0 if there are none or one does not report
// it. root: the folder of sys.
double interface_speed(const std::filesystem::path& root = "/");

struct ProbeOptions {
  double seconds = 0.3;   // for the measurement of memory, approximately
  std::size_t bytes = 0;  // the largest working set of a rank; 0: beyond the caches
};

// Measures the memory bandwidth with working sets from 16 KiB to beyond the caches, on all ranks at
// once, and the latency of a signal; asks the system for the bandwidth of the line, which stays 0
// if it does not tell. All ranks call it together and get the same result. Throws PeerLost.
Limits measure_limits(Transport& transport, const simd::Loops& loops, const Topology& topology,
                      const ProbeOptions& options = {});

}  // namespace cnn::allreduce
