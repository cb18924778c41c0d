#include "bench/machine/machine_model.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/json/parse_json.h"
#include "runtime/error.h"
#include "runtime/spelling.h"

namespace cnn::bench {
namespace {

using nlohmann::json;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// An object of a profile, whose errors state the position in the file.
class Section {
 public:
  Section(const json& object, std::string path, std::string_view file)
      : object_(object), path_(std::move(path)), file_(file) {
    if (!object.is_object()) {
      fail(path_.empty() ? "is no JSON object" : path_ + " is no object");
    }
  }

  Section section(std::string_view key) const { return {required(key), name_of(key), file_}; }
  bool has(std::string_view key) const { return object_.contains(key); }

  std::string text(std::string_view key) const {
    const json& value = required(key);
    if (!value.is_string()) {
      fail(name_of(key) + " is no text");
    }
    return value.get<std::string>();
  }
  // Returns a positive number.
  double number(std::string_view key) const {
    const json& value = required(key);
    if (!value.is_number() || !(value.get<double>() > 0)) {
      fail(fmt::format("{} is {}, not a number above 0", name_of(key), value.dump()));
    }
    return value.get<double>();
  }
  double number_or(std::string_view key, double otherwise) const {
    return has(key) ? number(key) : otherwise;
  }
  std::size_t bytes(std::string_view key) const {
    const json& value = required(key);
    if (!value.is_number_unsigned() || value.get<std::size_t>() == 0) {
      fail(
          fmt::format("{} is {}, not a whole number of bytes above 0", name_of(key), value.dump()));
    }
    return value.get<std::size_t>();
  }
  std::string dump(std::string_view key) const { return section(key).object_.dump(); }

  // Rejects other keys, so that a misspelt key does not pass for an omitted one.
  void allow(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : object_.items()) {
      if (std::ranges::find(keys, key) == keys.end()) {
        fail(fmt::format("{} is no key of a profile", name_of(key)));
      }
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("--simulate: the profile {}: {}", file_, what));
  }

 private:
  const json& required(std::string_view key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) {
      fail(name_of(key) + " is missing");
    }
    return *found;
  }
  std::string name_of(std::string_view key) const {
    return (path_.empty() ? "" : path_ + ".") + std::string(key);
  }

  const json& object_;
  std::string path_;
  std::string_view file_;
};

Calibration read_calibration(const Section& calibration) {
  calibration.allow({"model", "batch_size", "precision", "images_per_sec"});
  return {.text = fmt::format("{}, {}, batch {:.0f}: {:g} images/sec", calibration.text("model"),
                              calibration.text("precision"), calibration.number("batch_size"),
                              calibration.number("images_per_sec"))};
}

Link read_link(const Section& link) {
  link.allow({"out_bytes_per_second", "in_bytes_per_second", "both_bytes_per_second"});
  return {.out = link.number("out_bytes_per_second"),
          .in = link.number("in_bytes_per_second"),
          .both = link.number_or("both_bytes_per_second", 0)};
}

Efficiency read_efficiency(const Section& efficiency) {
  efficiency.allow({"products", "bytes"});
  const Efficiency read{.products = efficiency.number("products"),
                        .bytes = efficiency.number("bytes")};
  if (read.products > 1 || read.bytes > 1) {
    efficiency.fail("efficiency.products and efficiency.bytes are shares, at most 1");
  }
  return read;
}

void read_flops(const Section& flops, MachineModel& model) {
  flops.allow({"f16", "bf16", "tf32", "f32"});
  model.flops_f32 = flops.number("f32");
  model.flops_f16 = flops.number_or("f16", 0);
  model.flops_bf16 = flops.number_or("bf16", 0);
  model.flops_tf32 = flops.number_or("tf32", 0);
}

MachineModel model_of(const Section& file) {
  file.allow({"name", "source", "flops_per_second", "bandwidth_bytes_per_second", "efficiency",
              "calibration", "memory_bytes", "usable_memory_bytes", "host_memory_bytes", "link",
              "cudnn"});
  MachineModel model{.name = file.text("name"),
                     .source = file.text("source"),
                     .bandwidth = file.number("bandwidth_bytes_per_second"),
                     .memory_bytes = file.bytes("memory_bytes"),
                     .usable_memory_bytes = file.bytes("usable_memory_bytes"),
                     .host_memory_bytes = file.bytes("host_memory_bytes"),
                     .link = read_link(file.section("link"))};
  read_flops(file.section("flops_per_second"), model);
  if (model.usable_memory_bytes > model.memory_bytes) {
    file.fail("usable_memory_bytes is more than memory_bytes");
  }
  if (file.has("efficiency")) {
    model.efficiency = read_efficiency(file.section("efficiency"));
  }
  if (file.has("calibration")) {
    model.calibration = read_calibration(file.section("calibration"));
  }
  if (file.has("cudnn")) {
    model.cudnn = file.dump("cudnn");
  }
  return model;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  check(file.good() && text.good(), fmt::format("--simulate={}: cannot be read", path));
  return text.str();
}

}  // namespace

double MachineModel::flops(Precision precision) const {
  const Arithmetic arithmetic = arithmetic_of(precision, has_tf32());
  const double rate = arithmetic.products == "f16"    ? flops_f16
                      : arithmetic.products == "bf16" ? flops_bf16
                      : arithmetic.products == "tf32" ? flops_tf32
                                                      : flops_f32;
  check(rate > 0, fmt::format("--precision={}: {} does not compute in {} (its profile has no "
                              "flops_per_second.{})",
                              word_of(precision), name, arithmetic.products, arithmetic.products));
  return rate;
}

MachineModel read_machine(std::string_view text, std::string_view where) {
  try {
    const auto parsed = data::parse_json<json>(text);
    return model_of(Section(parsed, "", where));
  } catch (const data::JsonError& problem) {
    throw Error(fmt::format("--simulate: the profile {} is {}", where, problem.what()));
  }
}

std::vector<MachineModel> known_machines() {
  std::vector<MachineModel> machines;
  for (const std::string_view text : machine_texts()) {
    machines.push_back(read_machine(text, "of the program"));
  }
  std::ranges::sort(machines, {}, &MachineModel::name);
  return machines;
}

MachineModel find_machine(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (MachineModel& model : known_machines()) {
    if (lower(model.name) == lower(name_or_file)) {
      return std::move(model);
    }
    names.push_back(lower(model.name));
  }
  std::error_code ignored;
  check(std::filesystem::is_regular_file(name_or_file, ignored),
        fmt::format("--simulate={}: there is no profile of that name and no such file; there are "
                    "{}{}",
                    name_or_file, fmt::join(names, ", "), did_you_mean(name_or_file, names)));
  return read_machine(read_text(name_or_file), name_or_file);
}

Arithmetic arithmetic_of(Precision request, bool has_tf32) {
  switch (request) {
    case Precision::fp16:
      return {DataType::f16, "f16"};
    case Precision::bf16:
      return {DataType::bf16, "bf16"};
    case Precision::fp32_strict:
      return {DataType::f32, "f32"};
    case Precision::fp32:
      if (!has_tf32) {
        return {DataType::f32, "f32"};
      }
      break;
    case Precision::tf32:
      break;
  }
  return {DataType::f32, "tf32",
          "precision: f32 with products in TF32, as is cuDNN's default (operands rounded to 10 "
          "bits, sums in f32); --precision=fp32_strict forbids it"};
}

}  // namespace cnn::bench
