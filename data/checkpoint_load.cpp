#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "data/checkpoint.h"
#include "data/file.h"
#include "data/safetensors.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

using Entry = SafetensorsFile::Entry;

constexpr std::string_view step_name = "global_step";
constexpr std::array<std::string_view, 5> slot_kinds{"Momentum", "RMSProp", "RMSProp_1", "Adam",
                                                     "Adam_1"};
// Scalars that upstream's optimizers and automatic loss scale keep.
constexpr std::array<std::string_view, 2> adam_scalars{"beta1_power", "beta2_power"};
constexpr std::array<std::string_view, 2> scale_scalars{"loss_scale", "loss_scale_normal_steps"};

template <std::size_t n>
bool contains(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Upstream names variables v/... or v0/... by mode; here both are equal.
std::string unified(std::string_view name) {
  constexpr std::string_view replicated = "v0/";
  return name.starts_with(replicated) ? std::string("v/").append(name.substr(replicated.size()))
                                      : std::string(name);
}

using ByName = std::map<std::string, const Entry*, std::less<>>;

ByName entries_by_unified_name(const SafetensorsFile& file) {
  ByName entries;
  for (const auto& [name, entry] : file.entries()) {
    check(entries.emplace(unified(name), &entry).second,
          "it has the variable " + printable(name) + " both as v/ and as v0/");
  }
  return entries;
}

// Reads a scalar, or one element, of any integer or floating type.
std::int64_t read_step(const SafetensorsFile& file, const Entry& entry) {
  check(entry.tensor.shape.elements() == 1, "its global_step is no scalar");
  if (entry.tensor.type == StoredType::i64) {
    std::int64_t step = 0;
    file.read(entry, 0, std::as_writable_bytes(std::span(&step, 1)));
    check(step >= 0, "its global_step is negative");
    return step;
  }
  float step = 0;
  file.read_f32(entry, std::span(&step, 1));
  check(step >= 0 && step < 0x1p62F && std::floor(step) == step, "its global_step is no step");
  return static_cast<std::int64_t>(step);
}

// Returns one if the file does not state a number.
int ranks_of(const SafetensorsFile& file) {
  const auto said = file.metadata().find("ranks");
  int ranks = 1;
  if (said != file.metadata().end()) {
    const std::string& digits = said->second;
    std::from_chars(digits.data(), digits.data() + digits.size(), ranks);
  }
  return ranks;
}

// Returns the kind of slot if the name is a wanted variable followed by one.
std::string_view slot_kind(std::string_view name, const std::set<std::string>& variables) {
  const std::size_t slash = name.rfind('/');
  if (slash == std::string_view::npos || !contains(slot_kinds, name.substr(slash + 1)) ||
      !variables.contains(std::string(name.substr(0, slash)))) {
    return {};
  }
  return name.substr(slash + 1);
}

// Throws Error at the first unknown tensor. Returns the kinds of unused slots.
std::set<std::string> examine_extras(const ByName& entries, std::span<const NamedTensor> model) {
  std::set<std::string> wanted;
  std::set<std::string> variables;
  for (const NamedTensor& tensor : model) {
    wanted.insert(unified(tensor.name));
    if (tensor.required) {
      variables.insert(unified(tensor.name));
    }
  }
  std::set<std::string> unused;
  for (const auto& [name, entry] : entries) {
    if (wanted.contains(name) || name == step_name || contains(scale_scalars, name)) {
      continue;
    }
    const std::string_view kind =
        contains(adam_scalars, name) ? std::string_view(name) : slot_kind(name, variables);
    check(!kind.empty(), "the model has no variable " + printable(entry->tensor.name) +
                             ", which it holds; is it of another model?");
    unused.emplace(kind);
  }
  return unused;
}

std::string list_of(const std::set<std::string>& kinds) {
  std::string list;
  for (const std::string& kind : kinds) {
    list += (list.empty() ? "" : ", ") + kind;
  }
  return list;
}

std::string notice_of(const std::set<std::string>& kinds, const std::string& path) {
  return path + " holds slots of another optimizer (" + list_of(kinds) + "), which are not used";
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

bool is_slot(const NamedTensor& tensor) {
  return !tensor.required &&
         (contains(adam_scalars, tensor.name) || contains(slot_kinds, last_part(tensor.name)));
}

// Returns a notice about slots of the optimizer that the file lacks; nothing if it has all.
std::optional<std::string> notice_of_missing(std::span<const NamedTensor> wanted,
                                             std::span<const std::size_t> missing,
                                             const std::string& path) {
  std::set<std::string> kinds;
  std::ptrdiff_t absent = 0;
  for (const std::size_t index : missing) {
    if (is_slot(wanted[index])) {
      ++absent;
      kinds.emplace(last_part(wanted[index].name));
    }
  }
  if (absent == 0) {
    return std::nullopt;
  }
  const std::ptrdiff_t slots = std::ranges::count_if(wanted, is_slot);
  return path +
         (absent == slots
              ? " holds no"
              : " lacks " + std::to_string(absent) + " of the " + std::to_string(slots)) +
         " slots of the optimizer (" + list_of(kinds) + "): they start at their initial values";
}

struct Found {
  std::size_t index = 0;  // in `wanted`
  const Entry* entry = nullptr;
};

std::vector<Found> match(const ByName& entries, std::span<const NamedTensor> wanted,
                         Loaded& loaded) {
  std::vector<Found> found;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto at = entries.find(unified(wanted[i].name));
    if (at == entries.end()) {
      check(!wanted[i].required, "it has no variable " + wanted[i].name);
      loaded.missing.push_back(i);
      continue;
    }
    const Shape& shape = at->second->tensor.shape;
    check(shape == wanted[i].shape, "variable " + wanted[i].name + " has the shape " +
                                        to_string(shape) + " there, but the model's is " +
                                        to_string(wanted[i].shape));
    found.push_back({i, at->second});
  }
  return found;
}

// Throws Error; if the file is damaged, the message names the newest complete checkpoint.
SafetensorsFile open_checkpoint(const std::filesystem::path& path) {
  try {
    return SafetensorsFile(path);
  } catch (const Error& error) {
    const auto whole = find_whole_before(path);
    throw Error(whole ? std::string(error.what()) + "; " + whole->filename().string() +
                            " beside it is whole: remove the damaged file to go on from that one"
                      : error.what());
  }
}

std::int64_t count_non_finite(std::span<const float> values) {
  return std::ranges::count_if(values, [](float value) { return !std::isfinite(value); });
}

// Tensors with NaN or infinities: the first one, and their number.
struct Damaged {
  std::string first;
  std::int64_t count = 0, elements = 0;  // of the first tensor
  std::size_t tensors = 0;
};

std::string notice_of(const Damaged& damaged, const std::string& path) {
  const std::string values =
      std::to_string(damaged.count) + " of " + std::to_string(damaged.elements) + " values";
  const std::string which = damaged.tensors == 1
                                ? " holds NaN or infinity (" + values + ")"
                                : " and " + std::to_string(damaged.tensors - 1) +
                                      " more hold NaN or infinity (" + values + " of the first)";
  return path + ": " + damaged.first + which +
         ": use an earlier checkpoint, or train again at a lower rate";
}

// Returns the non-finite tensors. The scratch is as large as the largest tensor.
Damaged read_values(const SafetensorsFile& file, std::span<const Found> found,
                    std::span<const NamedTensor> wanted, const ValueSink& sink) {
  std::size_t largest = 0;
  for (const Found& one : found) {
    largest = std::max(largest, static_cast<std::size_t>(one.entry->tensor.shape.elements()));
  }
  std::vector<float> scratch(largest);
  Damaged damaged;
  for (const Found& one : found) {
    const auto values =
        std::span(scratch).first(static_cast<std::size_t>(one.entry->tensor.shape.elements()));
    file.read_f32(*one.entry, values);
    sink(one.index, values);
    const std::int64_t count = count_non_finite(values);
    if (count > 0 && ++damaged.tensors == 1) {
      damaged.first = wanted[one.index].name;
      damaged.count = count;
      damaged.elements = static_cast<std::int64_t>(values.size());
    }
  }
  return damaged;
}

}  // namespace

Loaded load(const std::filesystem::path& path, std::span<const NamedTensor> wanted,
            const ValueSink& sink, Purpose purpose) {
  const SafetensorsFile file = open_checkpoint(path);
  Loaded loaded;
  std::vector<Found> found;
  try {
    const ByName entries = entries_by_unified_name(file);
    found = match(entries, wanted, loaded);
    const std::set<std::string> unused = examine_extras(entries, wanted);
    if (!unused.empty() && purpose == Purpose::training) {
      loaded.notices.push_back(notice_of(unused, path.string()));
    }
    if (auto notice = notice_of_missing(wanted, loaded.missing, path.string());
        notice && purpose == Purpose::training) {
      loaded.notices.push_back(*std::move(notice));
    }
    const auto step = entries.find(step_name);
    loaded.global_step = step == entries.end() ? step_of(path) : read_step(file, *step->second);
    loaded.ranks = ranks_of(file);
  } catch (const Error& error) {
    throw Error("cannot load the checkpoint " + path.string() + ": " + error.what());
  }
  const Damaged damaged = read_values(file, found, wanted, sink);
  if (damaged.tensors > 0) {
    loaded.notices.push_back(notice_of(damaged, path.string()));
  }
  return loaded;
}

}  // namespace cnn::data
