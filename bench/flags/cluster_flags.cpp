#include "bench/flags/cluster_flags.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr std::string_view port_digits = "0123456789";
constexpr std::string_view host_characters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
constexpr std::array<std::string_view, 5> cluster_flags{"job_name", "ps_hosts", "worker_hosts",
                                                        "controller_host", "task_index"};

const Setting& setting_of(std::span<const Setting> settings, std::string_view name) {
  return *std::ranges::find_if(settings,
                               [&](const Setting& setting) { return setting.flag->name == name; });
}

std::string value_in(std::span<const Setting> settings, std::string_view name) {
  const Plain& value = setting_of(settings, name).value;
  return value == Plain() ? std::string() : to_text(value);
}

// Returns "--job_name=worker" for the first flag that is set; nothing if none is.
std::optional<std::string> first_that_is_set(std::span<const Setting> settings) {
  for (const std::string_view name : cluster_flags) {
    const Setting& setting = setting_of(settings, name);
    if (setting.value != default_value(*setting.flag)) {
      return fmt::format("--{}={}", name, to_text(setting.value));
    }
  }
  return std::nullopt;
}

// Returns the entries of HOST:PORT,HOST:PORT. Scripts that join lines leave a comma at the end.
std::vector<std::string> entries_of(std::string_view list) {
  std::vector<std::string> entries;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view entry = list.substr(0, comma);
    if (const std::size_t begin = entry.find_first_not_of(" \t"); begin != entry.npos) {
      entries.emplace_back(entry.substr(begin, entry.find_last_not_of(" \t") + 1 - begin));
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return entries;
}

bool consists_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == text.npos;
}

// The parts of an entry: "a:22", "a", "[fd00::2]:22", "fd00::2".
struct Address {
  std::string_view host;
  std::string_view port;  // with its colon; or empty
  bool is_ipv6 = false;
};

Address address_of(std::string_view entry) {
  if (entry.starts_with('[')) {
    const std::size_t end = std::min(entry.find(']'), entry.size());
    return {.host = entry.substr(1, end - 1),
            .port = entry.substr(std::min(end + 1, entry.size())),
            .is_ipv6 = true};
  }
  const std::size_t colon = std::min(entry.find(':'), entry.size());
  if (entry.find(':', std::min(colon + 1, entry.size())) != entry.npos) {
    return {.host = entry, .port = {}, .is_ipv6 = true};
  }
  return {.host = entry.substr(0, colon), .port = entry.substr(colon)};
}

// Returns the host of an entry in mpirun's syntax.
std::string host_of(std::string_view list, const std::string& entry) {
  const Address address = address_of(entry);
  const bool good_port = address.port.empty() || (address.port.starts_with(':') &&
                                                  consists_of(address.port.substr(1), port_digits));
  const bool good_host = address.is_ipv6 || consists_of(address.host, host_characters);
  check(good_port && good_host,
        fmt::format("--worker_hosts={}: '{}' is no HOST or HOST:PORT", list, entry));
  if (address.is_ipv6 && address.host == "::1") {
    return "localhost";
  }
  check(!address.is_ipv6,
        fmt::format("--worker_hosts={}: mpirun takes no IPv6 addresses; give {} a name, such as by "
                    "/etc/hosts, and write that name",
                    list, address.host));
  return std::string(address.host);
}

struct Host {
  std::string name;
  int slots = 0;
};

// Returns the hosts of --worker_hosts with the number of workers on each, in list order.
std::vector<Host> hosts_of(const std::string& list) {
  std::vector<Host> hosts;
  for (const std::string& entry : entries_of(list)) {
    const std::string name = host_of(list, entry);
    auto found = std::ranges::find(hosts, name, &Host::name);
    if (found == hosts.end()) {
      found = hosts.insert(hosts.end(), Host{.name = name});
    }
    ++found->slots;
  }
  return hosts;
}

void check_task_index(std::span<const Setting> settings) {
  const std::string_view hosts =
      value_in(settings, "job_name") == "ps" ? "ps_hosts" : "worker_hosts";
  const std::string list = value_in(settings, hosts);
  const auto tasks = static_cast<std::int64_t>(entries_of(list).size());
  const std::string index = value_in(settings, "task_index");
  check(tasks == 0 || std::stoll(index) < tasks,
        fmt::format("--task_index={}: --{}={} names {}, so that it is less than {}", index, hosts,
                    list, tasks, tasks));
}

std::string in_shell(const std::string& word) {
  constexpr std::string_view marks = "=/,:+@%";
  if (consists_of(word, std::string(host_characters) + std::string(marks))) {
    return word;
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

// Returns the flags of the ranks. Parameter servers average the gradients of a worker's devices and
// apply each worker's gradients in turn, which distributed_replicated computes.
std::vector<std::string> flags_of_ranks(const Arguments& arguments, bool of_servers) {
  std::vector<std::string> flags;
  if (of_servers) {
    flags.emplace_back("--variable_update=distributed_replicated");
  }
  for (const auto& [name, value] : arguments.flags) {
    if (!is_cluster_flag(name) && !(of_servers && name == "variable_update")) {
      flags.push_back(in_shell(fmt::format("--{}={}", name, value)));
    }
  }
  return flags;
}

std::string mpirun_line(std::vector<Host> hosts, std::string_view program,
                        const std::vector<std::string>& flags) {
  if (hosts.empty()) {
    hosts = {{"HOST1", 1}, {"HOST2", 1}};
  }
  int ranks = 0;
  std::vector<std::string> slots;
  for (const Host& host : hosts) {
    ranks += host.slots;
    slots.push_back(fmt::format("{}:{}", host.name, host.slots));
  }
  return fmt::format("mpirun -np {} -H {} {} {}", ranks, fmt::join(slots, ","),
                     in_shell(std::string(program)), fmt::join(flags, " "));
}

}  // namespace

bool is_cluster_flag(std::string_view name) {
  return std::ranges::find(cluster_flags, name) != cluster_flags.end();
}

void refuse_cluster_flags(std::span<const Setting> settings, const Arguments& arguments,
                          std::string_view program, bool launched) {
  const std::optional<std::string> told = first_that_is_set(settings);
  if (!told) {
    return;
  }
  check(!launched,
        fmt::format("{} is not supported: mpirun has started this rank and knows the others; leave "
                    "out --{}",
                    *told, fmt::join(cluster_flags, ", --")));
  const std::vector<Host> hosts = hosts_of(value_in(settings, "worker_hosts"));
  check_task_index(settings);
  const std::string role = value_in(settings, "job_name");
  const bool of_servers = value_in(settings, "variable_update") == "parameter_server";
  std::string text = fmt::format(
      "{} is not supported: all ranks, one for each worker, are started together by mpirun, which "
      "tells them who they are",
      *told);
  if (of_servers || role == "ps" || !value_in(settings, "ps_hosts").empty()) {
    text += "; --ps_hosts are no ranks, an allreduce among the workers takes their place";
  }
  if (role == "ps" || role == "controller") {
    text += fmt::format("; no process with --job_name={} is needed", role);
  }
  text += hosts.empty() ? "; --worker_hosts names no host, so put yours into this line"
                        : "; start this once, in place of all of them";
  throw Error(fmt::format("{}: {}", text,
                          mpirun_line(hosts, program, flags_of_ranks(arguments, of_servers))));
}

}  // namespace cnn::bench
