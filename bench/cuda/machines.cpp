#include "bench/cuda/machines.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

using layers::cuda::Machine;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

Machine read_machine(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    const nlohmann::json& device = json.at("cudnn");
    const nlohmann::json& flops = json.at("flops_per_second");
    Machine machine{.name = json.at("name").get<std::string>(),
                    .device_json = device.dump(),
                    .capability = device.at("deviceVer").get<int>() / 10,
                    .multiprocessors = device.at("multiProcessorCount").get<int>(),
                    .memory_bytes = device.at("totalGlobalMem").get<std::size_t>(),
                    .bandwidth = json.at("bandwidth_bytes_per_second").get<double>()};
    machine.flops_f16 = flops.at("f16").get<double>();
    machine.flops_bf16 = flops.at("bf16").get<double>();
    machine.flops_tf32 = flops.at("tf32").get<double>();
    machine.flops_f32 = flops.at("f32").get<double>();
    machine.source = json.at("source").get<std::string>();
    return machine;
  } catch (const nlohmann::json::exception& error) {
    throw Error(std::string("the description of a machine cannot be read: ") + error.what());
  }
}

std::vector<Machine> known_machines() {
  std::vector<Machine> machines;
  for (const std::string_view text : machine_texts()) {
    machines.push_back(read_machine(text));
  }
  std::ranges::sort(machines, {}, &Machine::name);
  return machines;
}

Machine find_machine(std::string_view name) {
  std::string names;
  for (Machine& machine : known_machines()) {
    if (lower(machine.name) == lower(name)) {
      return std::move(machine);
    }
    names += (names.empty() ? "" : ", ") + lower(machine.name);
  }
  throw Error("there is no description of a machine called '" + std::string(name) +
              "'; there are " + names);
}

const Machine* machine_like(std::span<const Machine> machines, std::string_view device_name) {
  const auto found = std::ranges::find_if(machines, [&](const Machine& machine) {
    return device_name.find(machine.name) != std::string_view::npos;
  });
  return found == machines.end() ? nullptr : &*found;
}

}  // namespace cnn::bench
