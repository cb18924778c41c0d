#include "bench/plan/lms_plan_file.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "bench/flags/config.h"
#include "bench/version/build_info.h"
#include "data/json/parse_json.h"
#include "layers/initializer.h"
#include "lms/catalog.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr std::string_view format_name = "cnn_benchmarks lms plan";
constexpr int format_version = 1;
constexpr std::string_view make_anew = "make one for this run with --lms_plan_out";

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

// Formats a step: "run 12 conv", "out 57 relu3", "in 57 relu3 after 33 35".
struct StepText {
  const Graph& graph;

  std::string operator()(const Compute& compute) const {
    const std::size_t node = index_of(compute.node);
    return fmt::format("run {} {}", node, graph.nodes()[node].op->name());
  }
  std::string operator()(const Offload& offload) const { return copy("out", offload.tensor); }
  std::string operator()(const Fetch& fetch) const { return copy("in", fetch.tensor); }
  std::string operator()(const Store& store) const { return copy("store", store.tensor); }
  std::string operator()(const Load& load) const { return copy("load", load.tensor); }
  std::string copy(std::string_view way, TensorId tensor) const {
    return fmt::format("{} {} {}", way, index_of(tensor), graph.info(tensor).name);
  }
};

std::string step_text(const Graph& graph, const Step& step) {
  std::string text = std::visit(StepText{graph}, step.action);
  for (std::size_t w = 0; w < step.after.size(); ++w) {
    text += fmt::format("{}{}", w == 0 ? " after " : " ", index_of(step.after[w]));
  }
  return text;
}

// Parses the lines of steps.
class StepReader {
 public:
  explicit StepReader(const Graph& graph) : graph_(graph) {}

  // `at`: index in the schedule.
  Step read(const std::string& line, std::size_t at) const {
    std::vector<std::string> words;
    std::istringstream in(line);
    for (std::string word; in >> word;) {
      words.push_back(word);
    }
    const bool waits = words.size() > 4 && words[3] == "after";
    if (words.size() < 3 || (words.size() > 3 && !waits)) {
      fail(line, at, "is none");
    }
    Step step = action(words, line, at);
    for (std::size_t w = 4; w < words.size(); ++w) {
      step.after.push_back(StepId{static_cast<std::uint32_t>(number(words[w], at, line, at))});
    }
    return step;
  }

 private:
  Step action(const std::vector<std::string>& words, const std::string& line,
              std::size_t at) const {
    if (words[0] == "run") {
      const std::size_t node = number(words[1], graph_.nodes().size(), line, at);
      const Op& op = *graph_.nodes()[node].op;
      if (words[2] != op.name()) {
        fail(line, at, fmt::format("names a node that is '{}' here", op.name()));
      }
      const NodeId id{static_cast<std::uint32_t>(node)};
      return {.action = Compute{id}, .lane = op.lane(), .after = {}};
    }
    const std::size_t index = number(words[1], graph_.tensors().size(), line, at);
    const TensorId tensor{static_cast<std::uint32_t>(index)};
    if (words[2] != graph_.info(tensor).name) {
      fail(line, at, fmt::format("names a tensor that is '{}' here", graph_.info(tensor).name));
    }
    if (words[0] == "out") {
      return {.action = Offload{tensor}, .lane = Lane::copy_out, .after = {}};
    }
    if (words[0] == "in") {
      return {.action = Fetch{tensor}, .lane = Lane::copy_in, .after = {}};
    }
    if (words[0] == "store") {
      return {.action = Store{tensor}, .lane = Lane::disk, .after = {}};
    }
    if (words[0] != "load") {
      fail(line, at, "begins with none of run, out, in, store and load");
    }
    return {.action = Load{tensor}, .lane = Lane::disk, .after = {}};
  }

  static std::size_t number(const std::string& word, std::size_t below, const std::string& line,
                            std::size_t at) {
    constexpr std::size_t max_digits = 9;
    const bool digits =
        word.size() <= max_digits && word.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t value = digits ? std::stoul(word) : below;
    if (value >= below) {
      fail(line, at, fmt::format("has '{}' where a number below {} is due", word, below));
    }
    return value;
  }

  [[noreturn]] static void fail(const std::string& line, std::size_t at, const std::string& what) {
    throw Error(fmt::format("step {} ('{}') {}", at, line, what));
  }

  const Graph& graph_;
};

// Throws Error unless the facts of the file equal those of this run.
void check_origin(const Json& file, const PlanOrigin& origin) {
  const Json& facts = file.at("of");
  std::vector<std::string> differences;
  for (const auto& [name, here] : origin.facts) {
    const std::string there = facts.value(name, "not said");
    if (there != here) {
      differences.push_back(fmt::format("{} {} (here {})", name, there, here));
    }
  }
  check(differences.empty(), fmt::format("the plan is for another step: {}; {}",
                                         fmt::join(differences, ", "), make_anew));
  check(file.at("graph").get<std::string>() == hash_text(origin.graph),
        fmt::format("the plan is for another graph of this network, made by version {}: other "
                    "flags or another version shape the step differently; {}",
                    file.value("program", "not said"), make_anew));
}

// Returns a number of bytes. JSON would silently convert a negative or fractional number.
std::size_t bytes_of(const Json& file, const char* name) {
  const Json& value = file.at(name);
  check(value.is_number_unsigned(),
        fmt::format("\"{}\" is {}, not a number of bytes", name, value.dump()));
  return value.get<std::size_t>();
}

// Null means any size.
std::size_t join_of(const Json& file) {
  constexpr const char* name = "largest_join_bytes";
  return file.at(name).is_null() ? layers::any_size : bytes_of(file, name);
}

// Older files have none.
std::int64_t slices_of(const Json& file, const char* name) {
  if (!file.contains(name)) {
    return 1;
  }
  const Json& value = file.at(name);
  check(value.is_number_unsigned() && value >= 1 && value <= max_slices,
        fmt::format("\"{}\" is {}, not a number from 1 to {}", name, value.dump(), max_slices));
  return value.get<std::int64_t>();
}

// Older files have none.
bool host_variables_of(const Json& file) {
  constexpr const char* name = "host_variables";
  return file.contains(name) && file.at(name).get<bool>();
}

std::string policy_of(const Json& file) {
  auto policy = file.at("policy").get<std::string>();
  lms::find_policy(policy);
  return policy;
}

void check_format(const Json& file) {
  check(file.is_object() && file.value("format", "") == format_name,
        fmt::format("it is no plan of --lms_plan_out: its \"format\" is not \"{}\"", format_name));
  const Json& version = file.at("version");  // which may be any number
  check(version == format_version,
        fmt::format("it has version {} of the format, this program reads version {}; {}",
                    version.dump(), format_version, make_anew));
}

SavedPlan plan_of(const Json& file, const PlanOrigin& origin, const Graph& graph) {
  check_origin(file, origin);
  SavedPlan plan{.policy = policy_of(file),
                 .max_fused_grad_add_bytes = join_of(file),
                 .slices = slices_of(file, "slices"),
                 .row_slices = slices_of(file, "row_slices"),
                 .dense_slices = slices_of(file, "dense_slices"),
                 .host_variables = host_variables_of(file),
                 .budget = bytes_of(file, "budget_bytes"),
                 .peak = bytes_of(file, "peak_bytes"),
                 .host = bytes_of(file, "host_bytes"),
                 // Older files lack it.
                 .enough = file.contains("enough_bytes") ? bytes_of(file, "enough_bytes") : 0,
                 .bucket_bytes = bytes_of(file, "bucket_bytes"),
                 .schedule = {}};
  const StepReader reader(graph);
  const Json& steps = file.at("steps");  // a loop over null or a string would have no complaint
  check(steps.is_array(), fmt::format("a value is of another kind: \"steps\" is {}, not an array",
                                      steps.type_name()));
  for (const Json& line : steps) {
    plan.schedule.steps.push_back(reader.read(line.get<std::string>(), plan.schedule.steps.size()));
  }
  return plan;
}

// Returns the result of `read` on a plan's JSON.
template <class Read>
auto with_json(const std::string& text, const Read& read) {
  try {
    const auto file = data::parse_json<Json>(text);
    check_format(file);
    return read(file);
  } catch (const data::JsonError& problem) {
    throw Error(fmt::format("it is {}; {}", problem.what(), make_anew));
  } catch (const Json::exception& problem) {
    throw Error(fmt::format("a value is missing or of another kind: {}", problem.what()));
  }
}

// Returns the result of `read` on a file.
template <class Read>
auto with_text(const std::string& path, const Read& read) {
  try {
    // A device can be read without end, and opening a FIFO waits for its writer.
    std::error_code ignored;
    check(
        !std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored),
        "it is no regular file");
    std::ifstream file(path, std::ios::binary);
    check(file.is_open() && file.peek() != std::ifstream::traits_type::eof(),
          "cannot read it, or it is empty");
    return read(std::string{std::istreambuf_iterator<char>(file), {}});
  } catch (const Error& error) {
    throw Error(fmt::format("--lms_plan_file={}: {}", path, error.what()));
  }
}

// Each rank draws different synthetic images, under a different name.
std::string_view name_for_all(const TensorInfo& info) {
  const std::string_view name = info.name;
  return info.role == Role::state && !info.saved ? name.substr(0, name.find(':')) : name;
}

}  // namespace

std::uint64_t hash_of(const Graph& graph) {
  std::string text;
  const auto ids = [&](std::string_view what, const std::vector<TensorId>& tensors) {
    text += what;
    for (const TensorId tensor : tensors) {
      text += fmt::format(" {}", index_of(tensor));
    }
  };
  for (const TensorInfo& info : graph.tensors()) {
    text += fmt::format("{}: {} {}", name_for_all(info), to_string(info.desc),
                        static_cast<int>(info.role));
    if (info.alias) {
      text += fmt::format(" in {} at {}", index_of(info.alias->root), info.alias->channel_offset);
    }
    text += '\n';
  }
  for (const Node& node : graph.nodes()) {
    text += node.op->name();
    ids(" of", node.inputs);
    ids(" makes", node.outputs);
    text += '\n';
  }
  for (const Output& output : graph.outputs()) {
    text += fmt::format("{} is {}\n", output.name, index_of(output.tensor));
  }
  return layers::fnv1a(text);
}

Json plan_json(const SavedPlan& plan, const PlanOrigin& origin, const Graph& graph) {
  Json facts = Json::object();
  for (const auto& [name, text] : origin.facts) {
    facts[name] = text;
  }
  Json steps = Json::array();
  for (const Step& step : plan.schedule.steps) {
    steps.push_back(step_text(graph, step));
  }
  const Json join = plan.max_fused_grad_add_bytes == layers::any_size
                        ? Json()
                        : Json(plan.max_fused_grad_add_bytes);
  return {{"format", format_name},
          {"version", format_version},
          {"program", build_version()},
          {"of", std::move(facts)},
          {"graph", hash_text(origin.graph)},
          {"policy", plan.policy},
          {"budget_bytes", plan.budget},
          {"peak_bytes", plan.peak},
          {"host_bytes", plan.host},
          {"enough_bytes", plan.enough},
          {"bucket_bytes", plan.bucket_bytes},
          {"largest_join_bytes", join},
          {"slices", plan.slices},
          {"row_slices", plan.row_slices},
          {"dense_slices", plan.dense_slices},
          {"host_variables", plan.host_variables},
          {"steps", std::move(steps)}};
}

SavedPlan read_plan(const std::string& text, const PlanOrigin& origin, const Graph& graph) {
  return with_json(text, [&](const Json& file) { return plan_of(file, origin, graph); });
}

SavedPlan load_plan(const std::string& path, const PlanOrigin& origin, const Graph& graph) {
  return with_text(path, [&](const std::string& text) { return read_plan(text, origin, graph); });
}

PlanSizes read_plan_sizes(const std::string& text) {
  return with_json(text, [](const Json& file) {
    return PlanSizes{.bucket_bytes = bytes_of(file, "bucket_bytes"),
                     .max_fused_grad_add_bytes = join_of(file),
                     .slices = slices_of(file, "slices"),
                     .row_slices = slices_of(file, "row_slices"),
                     .dense_slices = slices_of(file, "dense_slices"),
                     .host_variables = host_variables_of(file)};
  });
}

PlanSizes load_plan_sizes(const std::string& path) { return with_text(path, read_plan_sizes); }

PlanFile::PlanFile(const std::string& path) : file_("--lms_plan_out", path) {}

void PlanFile::write(const SavedPlan& plan, const PlanOrigin& origin, const Graph& graph) const {
  file_.write(plan_json(plan, origin, graph).dump(1) + "\n");
}

}  // namespace cnn::bench
