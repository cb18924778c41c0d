#include "bench/machine/machine_model.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/flags/flag_table.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using nlohmann::json;

std::string text_of(std::string_view name) {
  for (const std::string_view text : machine_texts()) {
    if (json::parse(text).at("name") == name) {
      return std::string(text);
    }
  }
  return "";
}

// Returns the error message of a profile after `change` has modified it.
template <class Change>
std::string problem_of(const Change& change) {
  json profile = json::parse(text_of("P100-PCIe3"));
  change(profile);
  try {
    read_machine(profile.dump(), "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

std::string problem_of_name(const std::string& name) {
  try {
    find_machine(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(MachineModels, AreInTheProgram) {
  std::vector<std::string> names;
  for (const MachineModel& model : known_machines()) {
    names.push_back(model.name);
    EXPECT_THAT(model.source,
                testing::AnyOf(testing::HasSubstr("measured"), testing::HasSubstr("estimated"),
                               testing::HasSubstr("published")));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"A100", "H100", "H200", "P100-NVLink1", "P100-PCIe3",
                                             "V100-NVLink2"}));
}

TEST(MachineModels, AreFoundInAnyCase) {
  const MachineModel p100 = find_machine("p100-pcie3");
  EXPECT_EQ(p100.flops(Precision::fp32), 9.3e12);
  EXPECT_EQ(p100.bandwidth, 0.55e12);
  EXPECT_EQ(p100.link.out, 12e9);
  EXPECT_EQ(p100.link.in, 12e9);
  EXPECT_NEAR(static_cast<double>(p100.usable_memory_bytes), 15.2 * 1024 * 1024 * 1024, 1);
  EXPECT_EQ(p100.host_memory_bytes, std::size_t{64} << 30U);
  EXPECT_EQ(find_machine("P100-NVLINK1").link.in, 33e9);
  const MachineModel h200 = find_machine("h200");
  EXPECT_EQ(h200.bandwidth, 4.3e12);
  EXPECT_EQ(h200.flops(Precision::bf16), 790e12);
  EXPECT_EQ(h200.flops(Precision::fp32), 395e12);
  EXPECT_EQ(h200.flops(Precision::fp32_strict), 60e12);
}

TEST(MachineModels, AreReadFromAFile) {
  const tests::TemporaryFolder folder;
  json profile = json::parse(text_of("P100-PCIe3"));
  profile["name"] = "mine";
  profile["link"]["out_bytes_per_second"] = 7e9;
  std::ofstream(folder / "mine.json") << profile;
  const MachineModel mine = find_machine(folder / "mine.json");
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.link.out, 7e9);
}

TEST(MachineModels, AreListedToWhoAsksForAnother) {
  EXPECT_EQ(problem_of_name("mi300"),
            "--simulate=mi300: there is no profile of that name and no such file; there are a100, "
            "h100, h200, p100-nvlink1, p100-pcie3, v100-nvlink2");
  EXPECT_THAT(problem_of_name("/"), testing::HasSubstr("no such file"));
}

TEST(MachineModels, AreSuggestedToWhoMisspellsOne) {
  EXPECT_THAT(problem_of_name("h20"), testing::EndsWith("; did you mean h200?"));
}

TEST(MachineModels, AreTheNamesThatTheCompletionOfTheFlagOffers) {
  const Flag* const flag = find_flag("simulate");
  ASSERT_NE(flag, nullptr);
  const std::vector<std::string> offered = flag->known();
  for (const std::string& name : offered) {
    EXPECT_NO_THROW(find_machine(name)) << name;
  }
  EXPECT_EQ(offered.size(), known_machines().size());
}

TEST(MachineModels, SayWhatIsWrongWithAFile) {
  EXPECT_EQ(problem_of([](json& p) { p.erase("link"); }),
            "--simulate: the profile p.json: link is missing");
  EXPECT_EQ(problem_of([](json& p) { p["link"].erase("in_bytes_per_second"); }),
            "--simulate: the profile p.json: link.in_bytes_per_second is missing");
  EXPECT_EQ(problem_of([](json& p) { p["link"]["out_bytes_per_second"] = -1; }),
            "--simulate: the profile p.json: link.out_bytes_per_second is -1, not a number above "
            "0");
  EXPECT_EQ(problem_of([](json& p) { p["usable_memory_bytes"] = -5; }),
            "--simulate: the profile p.json: usable_memory_bytes is -5, not a whole number of "
            "bytes above 0");
  EXPECT_EQ(problem_of([](json& p) { p["memory_bytes"] = 1000; }),
            "--simulate: the profile p.json: usable_memory_bytes is more than memory_bytes");
  EXPECT_EQ(problem_of([](json& p) { p["flops_per_second"] = 3; }),
            "--simulate: the profile p.json: flops_per_second is no object");
  EXPECT_EQ(problem_of([](json& p) { p["name"] = 3; }),
            "--simulate: the profile p.json: name is no text");
  EXPECT_EQ(problem_of([](json& p) { p["efficiency"]["bytes"] = 1.5; }),
            "--simulate: the profile p.json: efficiency.products and efficiency.bytes are shares, "
            "at most 1");
  EXPECT_EQ(problem_of([](json& p) { p["link"]["latency"] = 1; }),
            "--simulate: the profile p.json: link.latency is no key of a profile");
  EXPECT_EQ(problem_of([](json& p) { p = 7; }),
            "--simulate: the profile p.json: is no JSON object");
  const auto refusal_of = [](const std::string& text) {
    return tests::error_of([&] { read_machine(text, "p.json"); });
  };
  const std::string start = "--simulate: the profile p.json is ";
  EXPECT_EQ(refusal_of("{").substr(0, start.size() + 28), start + "not JSON at line 1, column 2");
  EXPECT_EQ(refusal_of(std::string(200'000, '[')),
            start + "nested more deeply than 64 levels at line 1, column 65");
  EXPECT_EQ(refusal_of("{\"name\": 1e999}").substr(0, start.size() + 23),
            start + "not readable: a number ");
  EXPECT_EQ(refusal_of(R"({"link": {"out_bytes_per_second": 1, "out_bytes_per_second": 2}})"),
            start + "not readable: the key \"link.out_bytes_per_second\" is there twice");
}

TEST(MachineModels, RefuseAPrecisionThatTheMachineLacks) {
  const MachineModel p100 = find_machine("p100-pcie3");
  try {
    (void)p100.flops(Precision::bf16);
    FAIL() << "accepted bf16 on a P100";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "--precision=bf16: P100-PCIe3 does not compute in bf16 (its profile has no "
                 "flops_per_second.bf16)");
  }
  EXPECT_THROW((void)p100.flops(Precision::tf32), Error);
}

}  // namespace
}  // namespace cnn::bench
