#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Names = std::set<std::string>;

constexpr double one_mib = 1024.0 * 1024.0;

// All outputs that one run writes about itself.
struct Outputs {
  Finished run;
  json result, trace;
  std::string page, table, dot, steps_csv, lms_trace, lms_plan;
};

Outputs outputs_of(std::vector<std::string> more) {
  const TemporaryFolder folder;
  std::vector<std::string> flags{"--device=cpu",
                                 "--model=resnet20",
                                 "--data_name=cifar10",
                                 "--batch_size=4",
                                 "--num_warmup_batches=2",
                                 "--num_batches=6",
                                 "--display_every=1",
                                 "--print_plan",
                                 "--result_json=" + (folder / "r.json"),
                                 "--html_report=" + (folder / "p.html"),
                                 "--trace_file=" + (folder / "t.json"),
                                 "--tfprof_file=" + (folder / "ops.txt"),
                                 "--graph_file=" + (folder / "g.dot"),
                                 "--steps_csv=" + (folder / "s.csv")};
  const bool lms = !more.empty();
  if (lms) {
    flags.push_back("--lms_trace=" + (folder / "lms.json"));
    flags.push_back("--lms_plan_out=" + (folder / "plan.json"));
  }
  flags.insert(flags.end(), more.begin(), more.end());
  Outputs outputs{.run = run_program(flags)};
  EXPECT_EQ(outputs.run.status, 0) << outputs.run.err;
  outputs.result = json::parse(read_file(folder / "r.json"));
  outputs.trace = json::parse(read_file(folder / "t.json"));
  outputs.page = read_file(folder / "p.html");
  outputs.table = read_file(folder / "ops.txt");
  outputs.dot = read_file(folder / "g.dot");
  outputs.steps_csv = read_file(folder / "s.csv");
  if (lms) {
    outputs.lms_trace = read_file(folder / "lms.json");
    outputs.lms_plan = read_file(folder / "plan.json");
  }
  return outputs;
}

const Outputs& plain_run() {
  static const Outputs outputs = outputs_of({});
  return outputs;
}

const Outputs& lms_run() {
  static const Outputs outputs =
      outputs_of({"--batch_size=16", "--lms", "--device_memory_mb=18",
                  "--emulate_link_gbps=0.5,0.5", "--nomeasure_ceilings"});
  return outputs;
}

std::string fixed(const json& number, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << number.get<double>();
  return text.str();
}

std::string mib(double bytes) { return fixed(bytes / one_mib, 1) + " MiB"; }

// Returns the first group of each match.
Names all_matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  Names names;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

std::string match_in(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "nothing";
}

Names spans_of_trace(const json& trace) {
  Names names;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") {
      names.insert(event.at("name").get<std::string>());
    }
  }
  return names;
}

Names spans_of_lanes(const json& result) {
  Names names;
  for (const json& lane : result.at("profile").at("lanes")) {
    for (const json& span : lane.at("spans")) {
      names.insert(span.at("name").get<std::string>());
    }
  }
  return names;
}

// Returns names like "conv#1" without those of copies.
Names computes_in(const Names& spans) {
  Names names;
  for (const std::string& name : spans) {
    if (!name.starts_with("fetch ") && !name.starts_with("offload ")) {
      names.insert(name);
    }
  }
  return names;
}

Names planned_names(const Finished& run) {
  return all_matches(run.err, R"(\n *\d+ (?:compute|side|communicate) +([a-z_0-9]+#\d+) )");
}

Names drawn_names(const Outputs& outputs) {
  return all_matches(outputs.dot, R"(n\d+ \[label="([^\\"]+))");
}

// Returns the names in the second table, which lists single operations.
Names table_names(const Outputs& outputs) {
  return all_matches(outputs.table, R"(\n([a-z_0-9]+#\d+) )");
}

TEST(OutputsOfOneRun, CallEachOperationByOneName) {
  const Outputs& run = plain_run();
  const Names drawn = drawn_names(run);
  ASSERT_GT(drawn.size(), 50U);
  EXPECT_EQ(planned_names(run.run), drawn);
  EXPECT_EQ(computes_in(spans_of_trace(run.trace)), drawn);
  EXPECT_EQ(spans_of_trace(run.trace), spans_of_lanes(run.result));
  EXPECT_EQ(table_names(run), drawn);
  for (const std::string& name : drawn) {
    EXPECT_THAT(run.page, HasSubstr("<title>" + name + ": "));
  }
  EXPECT_EQ(match_in(run.run.err, R"((\d+) nodes)"), std::to_string(drawn.size()));
}

TEST(OutputsOfOneRun, CallTensorsByTheOperationThatMakesThem) {
  const Outputs& run = plain_run();
  const Names drawn = drawn_names(run);
  const json& memory = run.result.at("profile").at("memory");
  for (const json& tensor : memory.at("biggest")) {
    const std::string name = tensor.at("tensor");
    const std::string maker = match_in(name, R"(^(?:workspace of )?([a-z_0-9]+#\d+)(:\d+)?$)");
    EXPECT_TRUE(drawn.contains(maker)) << name;
    EXPECT_THAT(run.page, HasSubstr(">" + name + "</td>"));
  }
  for (const std::string& copied : all_matches(run.run.err, R"(offload ([a-z_0-9]+#\d+))")) {
    EXPECT_TRUE(drawn.contains(copied)) << copied;
  }
}

TEST(OutputsOfOneRun, AgreeOnNamesUnderLms) {
  const Outputs& run = lms_run();
  const Names drawn = drawn_names(run);
  ASSERT_TRUE(run.result.at("plan").at("lms").at("necessary")) << run.run.err;
  EXPECT_EQ(planned_names(run.run), drawn);
  EXPECT_EQ(table_names(run), drawn);
  EXPECT_EQ(computes_in(spans_of_lanes(run.result)), drawn);
  EXPECT_EQ(computes_in(spans_of_trace(json::parse(run.lms_trace))), drawn);
  const json plan = json::parse(run.lms_plan);
  Names planned;
  for (const json& step : plan.at("steps")) {
    const std::string text = step.is_string() ? step.get<std::string>() : step.dump();
    if (std::smatch match;
        std::regex_search(text, match, std::regex(R"(run (\d+) ([a-z_0-9]+))"))) {
      planned.insert(match[2].str() + "#" + match[1].str());
    }
  }
  EXPECT_EQ(planned, drawn);
  for (const json& tensor : run.result.at("profile").at("memory").at("moved")) {
    EXPECT_TRUE(drawn.contains(match_in(tensor.at("tensor"), R"(^([a-z_0-9]+#\d+))")));
  }
}

void expect_one_memory(const Outputs& run) {
  const json& plan = run.result.at("plan");
  const auto arena = plan.at("arena_bytes").get<double>();
  const auto variables = plan.at("variable_bytes").get<double>();
  EXPECT_THAT(run.run.err, HasSubstr("of it " + mib(variables) + " variables"));
  EXPECT_THAT(run.page, HasSubstr(">arena " + mib(arena)));
  const auto peak = run.result.at("memory").at("arena_peak_bytes").get<double>();
  EXPECT_THAT(run.page, HasSubstr("<b>" + mib(peak) + "</b>measured peak of the arena"));
  EXPECT_LE(peak, arena);
  const auto step = run.result.at("profile").at("memory").at("arena_bytes").get<double>();
  EXPECT_LE(variables + step, arena) << "a prologue may need more than the step";
}

TEST(OutputsOfOneRun, AgreeOnMemory) {
  expect_one_memory(plain_run());
  expect_one_memory(lms_run());
  const Outputs& run = plain_run();
  const auto arena = run.result.at("plan").at("arena_bytes").get<double>();
  EXPECT_THAT(run.run.err, HasSubstr("arena " + mib(arena) + " (lower bound "));
  EXPECT_EQ(match_in(run.run.err, R"(step arena +(\d+) bytes)"),
            run.result.at("profile").at("memory").at("arena_bytes").dump());
}

TEST(OutputsOfOneRun, AgreeOnSpeedAndSteps) {
  const Outputs& run = plain_run();
  const json& summary = run.result.at("summary");
  EXPECT_THAT(
      run.run.out,
      HasSubstr("total images/sec: " + fixed(summary.at("total_images_per_sec"), 2) + "\n"));
  const json& steps = run.result.at("steps");
  ASSERT_EQ(run.run.step_lines().size(), steps.size());
  EXPECT_THAT(run.run.step_lines().back(),
              HasSubstr(fixed(summary.at("images_per_sec"), 1) + " +/- " +
                        fixed(summary.at("uncertainty"), 1) +
                        " (jitter = " + fixed(summary.at("jitter"), 1) + ")"));
  EXPECT_THAT(run.run.step_lines().back(), HasSubstr("\t" + fixed(steps.back().at("loss"), 3)));
  const json& median = summary.at("median_step_seconds");
  const std::string milliseconds = fixed(1e3 * median.get<double>(), 2) + " ms";
  EXPECT_THAT(run.run.err, HasSubstr("median step " + fixed(median, 4) + " s"));
  EXPECT_THAT(run.run.err, HasSubstr("step time: p50 " + milliseconds + ", p90 "));
  EXPECT_EQ(summary.at("p50_step_seconds"), median);
  const std::string slowest = fixed(1e3 * summary.at("p99_step_seconds").get<double>(), 2) + " ms";
  EXPECT_THAT(run.run.err, HasSubstr(", p99 " + slowest + " of 6 steps"));
  EXPECT_THAT(run.page, HasSubstr("<b>" + slowest + "</b>99 of 100 steps within"));
  EXPECT_LE(summary.at("p90_step_seconds"), summary.at("p99_step_seconds"));
  EXPECT_THAT(run.page, HasSubstr("<b>" + milliseconds + "</b>median step"));
  EXPECT_THAT(run.page, HasSubstr("run median " + milliseconds));
  EXPECT_THAT(run.page, HasSubstr("<b>" + fixed(summary.at("images_per_sec"), 2) + " ± "));
  const std::string disturbed = summary.at("disturbed_steps").dump();
  EXPECT_THAT(run.page, HasSubstr("<b>" + disturbed + " of " + std::to_string(steps.size()) +
                                  "</b>steps disturbed"));
  if (const std::string told = match_in(run.run.err, R"(disturbed: (\d+) of)"); told != "nothing") {
    EXPECT_EQ(told, disturbed);
  }
}

TEST(OutputsOfOneRun, HaveEachStepInTheTableAsInTheResult) {
  const Outputs& run = plain_run();
  std::istringstream lines(run.steps_csv);
  std::string line;
  std::getline(lines, line);
  EXPECT_THAT(line, testing::StartsWith("step,seconds,images_per_sec,"));
  for (const json& step : run.result.at("steps")) {
    std::getline(lines, line);
    EXPECT_THAT(line, testing::StartsWith(step.at("step").dump() + "," + step.at("seconds").dump() +
                                          "," + step.at("images_per_sec").dump() + ","));
    EXPECT_THAT(line, HasSubstr("," + step.at("disturbed").dump() + ","));
  }
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(OutputsOfOneRun, AgreeOnWhatWasRun) {
  const Outputs& run = plain_run();
  EXPECT_THAT(run.run.out, HasSubstr("Mode:        training\n"));
  EXPECT_THAT(run.run.out, HasSubstr("Batch size:  4 global\n"));
  EXPECT_EQ(run.result.at("mode"), "training");
  EXPECT_EQ(run.result.at("batch").at("global"), 4);
  EXPECT_THAT(run.page, HasSubstr("training, batch 4, precision f32, data set cifar10"));
  EXPECT_THAT(run.run.err, HasSubstr("plan: f32 activations in " +
                                     run.result.at("plan").at("layout").get<std::string>()));
}

}  // namespace
}  // namespace cnn::tests
