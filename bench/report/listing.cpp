#include "bench/report/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/version/version_lines.h"
#include "models/catalog.h"
#include "runtime/error.h"
#include "runtime/graph.h"

namespace cnn::bench {
namespace {

std::string backend_line(const BackendKind& kind) {
  const std::string missing = why_missing(kind);
  if (!missing.empty()) {
    return fmt::format("{} backend: {}", kind.device, missing);
  }
  std::vector<std::string> libraries;
  for (const auto& [name, version] : kind.make(Config()).libraries) {
    libraries.push_back(fmt::format("{} {}", name, version));
  }
  return fmt::format(
      "{} backend: {}", kind.device,
      libraries.empty() ? "no libraries" : fmt::format("{}", fmt::join(libraries, ", ")));
}

// Counts the network's parameters at its default image size; their shapes do not depend on the
// batch.
std::int64_t trainable_parameters(const models::Model& model) {
  Graph graph;
  const Shape shape{1, model.channels, model.image_size, model.image_size};
  models::logits(model, graph.input("images", {shape, DataType::f32}));
  std::int64_t count = 0;
  for (const TensorInfo& info : graph.tensors()) {
    count += info.role == Role::parameter ? info.desc.shape.elements() : 0;
  }
  return count;
}

std::string row_text(std::string_view name, std::string_view data_set, std::string_view size,
                     std::string_view batch, std::string_view parameters) {
  return fmt::format("{:<28} {:<11} {:>10} {:>10} {:>12}", name, data_set, size, batch, parameters);
}

}  // namespace

std::vector<std::string> version_lines(std::string_view program,
                                       std::span<const BackendKind> backends) {
  std::vector<std::string> lines = version_lines(program);
  if (find_backend(backends, "gpu") == nullptr) {
    lines.emplace_back("gpu backend: not in this build");
  }
  for (const BackendKind& kind : backends) {
    lines.push_back(backend_line(kind));
  }
  return lines;
}

std::vector<std::string> model_lines(const data::Row* data_set) {
  std::vector<std::string> lines{
      row_text("--model", "--data_name", "image_size", "batch_size", "parameters")};
  for (const models::Model& model : models::all()) {
    if (data_set == nullptr || data_set->name == model.data_set) {
      lines.push_back(row_text(model.name, model.data_set, fmt::format("{}", model.image_size),
                               fmt::format("{}", model.batch_size),
                               fmt::format("{}", trainable_parameters(model))));
    }
  }
  check(lines.size() > 1, fmt::format("--data_name={}: it has no networks of its own; name one of "
                                      "imagenet, cifar10 and mnist",
                                      data_set == nullptr ? "" : data_set->name));
  return lines;
}

std::vector<std::string> listing(std::string_view program, const Config& config,
                                 std::span<const BackendKind> backends) {
  std::vector<std::string> lines;
  if (config.help.version) {
    lines = version_lines(program, backends);
  }
  if (config.help.list_models) {
    for (std::string& line : model_lines(config.data.set)) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

}  // namespace cnn::bench
