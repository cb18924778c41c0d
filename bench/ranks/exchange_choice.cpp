#include "bench/ranks/exchange_choice.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allreduce/choose.h"
#include "bench/flags/reduce_spec.h"
#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr int max_chunks = 64;  // the number of channels of ranks

// The requirements of an exchange.
struct Request {
  const allreduce::Topology& topology;
  bool peers_memory = false;
  std::size_t elements = 0;

  int ranks() const { return topology.ranks(); }
  int hosts() const { return *std::ranges::max_element(topology.host_of) + 1; }
};

bool is_possible(const Config& config, const Request& request) {
  try {
    return can_reduce(make_exchange(config, request.topology, request.peers_memory).settings,
                      request.elements);
  } catch (const Error&) {
    return false;
  }
}

// One flag value that the user could give instead.
struct FlagValue {
  std::string text;
  std::function<void(Config&)> apply;
};

// All other values of one flag, nearest first.
using Alternatives = std::vector<FlagValue>;

std::string spec_text(const std::vector<AlgorithmSpec>& algorithms) {
  std::string text;
  for (const AlgorithmSpec& algorithm : algorithms) {
    text += algorithm.name;
    text += algorithm.shards > 1 ? fmt::format("#{}", algorithm.shards) : "";
    for (std::size_t i = 0; i < algorithm.dims.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? '@' : 'x', algorithm.dims[i]);
    }
    text += algorithm.chunks > 0 ? fmt::format("%{}", algorithm.chunks) : "";
    text += algorithm.most ? fmt::format(":{}:", *algorithm.most) : "";
  }
  return text;
}

// Returns the numbers from 1 below this one, nearest first.
std::vector<int> smaller(int now) {
  std::vector<int> all;
  if (now > 1 && now - 1 <= max_chunks) {
    all.push_back(now - 1);
  }
  for (int power = max_chunks; power > 0; power /= 2) {
    if (power < now && (all.empty() || power < all.back())) {
      all.push_back(power);
    }
  }
  return all;
}

// Returns specs with fewer shards or chunks, the dimensions of the hosts, an algorithm that keeps
// every order, and one that fits any ranks.
std::vector<AlgorithmSpec> algorithms_near(const AlgorithmSpec& algorithm, const Request& request) {
  std::vector<AlgorithmSpec> near;
  const auto with = [&](const auto& change) { change(near.emplace_back(algorithm)); };
  for (const int shards : smaller(algorithm.shards)) {
    with([&](AlgorithmSpec& s) { s.shards = shards; });
  }
  for (const int chunks : smaller(algorithm.chunks)) {
    with([&](AlgorithmSpec& s) { s.chunks = chunks; });
  }
  if (!algorithm.dims.empty()) {
    with([&](AlgorithmSpec& s) { s.dims = {request.ranks() / request.hosts(), request.hosts()}; });
    with([&](AlgorithmSpec& s) { s.dims = {request.ranks()}; });
    with([](AlgorithmSpec& s) { s.name = "direct"; });
  }
  near.push_back({.name = "direct", .most = algorithm.most});
  near.push_back({.name = "auto", .most = algorithm.most});
  return near;
}

FlagValue spec_value(const std::vector<AlgorithmSpec>& algorithms) {
  std::string text = spec_text(algorithms);
  return {"--all_reduce_spec=" + text, [text](Config& config) { config.comm.spec = text; }};
}

// Returns specs with one part changed, or all of them replaced.
Alternatives specs_near(const std::string& spec, const Request& request) {
  Alternatives all;
  const std::vector<AlgorithmSpec> algorithms = parse_reduce_spec(spec);
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    for (const AlgorithmSpec& near : algorithms_near(algorithms[i], request)) {
      std::vector<AlgorithmSpec> changed = algorithms;
      changed[i] = near;
      all.push_back(spec_value(changed));
    }
  }
  for (const char* const name : {"direct", "auto"}) {
    all.push_back(spec_value({{.name = name}}));
  }
  return all;
}

Alternatives fewer(const char* flag, int now, int CommFlags::*member) {
  Alternatives all;
  for (const int less : smaller(now)) {
    all.push_back({fmt::format("--{}={}", flag, less),
                   [member, less](Config& config) { config.comm.*member = less; }});
  }
  return all;
}

Alternatives topologies(const Request& request) {
  Alternatives all;
  for (const std::string& text :
       {fmt::format("{}x{}", request.ranks() / request.hosts(), request.hosts()),
        fmt::format("{}", request.ranks())}) {
    all.push_back({"--comm_topology=" + text, [text](Config& c) { c.comm.topology = text; }});
  }
  return all;
}

// Returns the sizes that a bucket needs to be exchanged in so many chunks.
Alternatives larger_chunks(int now, const Request& request) {
  Alternatives all;
  for (int chunks = max_chunks; chunks > 0; chunks /= 2) {
    const std::size_t bytes = request.elements * sizeof(float);
    const auto unit = std::size_t{1024} * static_cast<std::size_t>(chunks);
    const auto kb = static_cast<int>(divide_up(bytes, unit));
    if (kb > now) {
      all.push_back({fmt::format("--comm_chunk_kb={}", kb),
                     [kb](Config& config) { config.comm.chunk_kb = kb; }});
    }
  }
  return all;
}

// Returns alternatives to the flags of the algorithm before those of the sums: a user prefers other
// rings to other bits.
std::vector<Alternatives> alternatives(const Config& config, const Request& request) {
  const CommFlags& flags = config.comm;
  std::vector<Alternatives> all;
  const auto offer = [&](bool is_set, const auto& values) {
    if (is_set) {
      all.push_back(values());
    }
  };
  const auto one = [](std::string text, std::function<void(Config&)> apply) {
    return Alternatives{{std::move(text), std::move(apply)}};
  };
  const bool ddl = config.variable_update == VariableUpdate::ddl && flags.ddl_options;
  offer(flags.spec.has_value(), [&] { return specs_near(*flags.spec, request); });
  offer(ddl, [&] {
    return one("--ddl_options=\"-mode p\"", [](Config& c) { c.comm.ddl_options = "-mode p"; });
  });
  offer(flags.hierarchical_copy, [&] {
    return one("--hierarchical_copy=false", [](Config& c) { c.comm.hierarchical_copy = false; });
  });
  offer(flags.topology.has_value(), [&] { return topologies(request); });
  offer(flags.rings > 1, [&] { return fewer("comm_rings", flags.rings, &CommFlags::rings); });
  offer(flags.chunk_kb > 0, [&] { return larger_chunks(flags.chunk_kb, request); });
  offer(flags.repacking > 1,
        [&] { return fewer("gradient_repacking", flags.repacking, &CommFlags::repacking); });
  offer(flags.check == CommCheck::exact, [&] {
    return one("--comm_check=hash", [](Config& c) { c.comm.check = CommCheck::hash; });
  });
  offer(flags.wire != allreduce::Wire::f32, [&] {
    return one("--comm_wire=fp32", [](Config& c) { c.comm.wire = allreduce::Wire::f32; });
  });
  offer(flags.order != allreduce::Order::fast, [&] {
    return one("--comm_order=fast", [](Config& c) { c.comm.order = allreduce::Order::fast; });
  });
  return all;
}

// Searches for a change of `flags` flags, from index `first` on, that makes the exchange possible.
std::optional<std::string> found_with(const Config& config, const std::vector<Alternatives>& all,
                                      std::size_t first, int flags, const Request& request) {
  for (std::size_t i = first; i < all.size(); ++i) {
    for (const FlagValue& value : all[i]) {
      Config changed = config;
      value.apply(changed);
      if (flags == 1) {
        if (is_possible(changed, request)) {
          return value.text;
        }
      } else if (const auto rest = found_with(changed, all, i + 1, flags - 1, request)) {
        return value.text + " and " + *rest;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> nearest_setting(const Config& config, const Request& request) {
  constexpr int most = 3;  // flags changed together
  const std::vector<Alternatives> all = alternatives(config, request);
  for (int flags = 1; flags <= most; ++flags) {
    if (std::optional<std::string> found = found_with(config, all, 0, flags, request)) {
      return found;
    }
  }
  return std::nullopt;
}

// Returns the flags that leave no algorithm, as given.
std::string asked_text(const Config& config) {
  const CommFlags& flags = config.comm;
  std::string text;
  const auto add = [&](bool is_set, const char* name, const auto& value) {
    text += is_set ? fmt::format("{}--{}={}", text.empty() ? "" : " ", name, value) : "";
  };
  const bool ddl = config.variable_update == VariableUpdate::ddl && flags.ddl_options;
  add(flags.spec.has_value(), "all_reduce_spec", flags.spec.value_or(""));
  add(ddl, "ddl_options", fmt::format("\"{}\"", flags.ddl_options.value_or("")));
  add(flags.hierarchical_copy, "hierarchical_copy", true);
  add(flags.topology.has_value(), "comm_topology", flags.topology.value_or(""));
  add(flags.rings > 0, "comm_rings", flags.rings);
  add(flags.chunk_kb > 0, "comm_chunk_kb", flags.chunk_kb);
  add(flags.repacking > 0, "gradient_repacking", flags.repacking);
  add(flags.wire.has_value(), "comm_wire", word_of(flags.wire.value_or(allreduce::Wire::f32)));
  add(flags.order != allreduce::Order::fast, "comm_order", word_of(flags.order));
  return text;
}

// Returns the elements of a bucket for the flags, if no tensor is larger.
std::size_t usual_bucket(const CommFlags& flags) {
  constexpr std::size_t most = std::size_t{1} << 30U;  // bytes, if all gradients are one bucket
  return std::min(bucket_sizes(flags).others, most) / sizeof(float);
}

std::string hosts_text(int hosts) {
  return hosts == 1 ? "one host" : fmt::format("{} hosts", hosts);
}

}  // namespace

Exchange possible_exchange(const Config& config, const allreduce::Topology& topology,
                           bool peers_memory, std::size_t elements) {
  // A suggestion made before the buckets are known must work for them too.
  const Request request{topology, peers_memory,
                        elements > 0 ? elements : usual_bucket(config.comm)};
  std::string why;
  try {
    Exchange exchange = make_exchange(config, topology, peers_memory);
    if (can_reduce(exchange.settings, elements)) {
      return exchange;
    }
    why = fmt::format("{}: no algorithm does this for {} ranks on {}", asked_text(config),
                      topology.ranks(), hosts_text(request.hosts()));
    if (config.comm.chunk_kb > 0 && elements > 0) {
      why += fmt::format(" and a bucket of {} KiB in at most {} chunks",
                         elements * sizeof(float) / 1024, max_chunks);
    }
  } catch (const Error& error) {
    why = error.what();
  }
  const std::optional<std::string> nearest = nearest_setting(config, request);
  throw Error(nearest ? fmt::format("{}; use {}", why, *nearest) : why);
}

}  // namespace cnn::bench
