#include "tests/layers/cases.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <string>

namespace cnn::tests {
namespace {

using Names = std::set<std::string>;

// Returns the names that the ops in the headers of layers/ declare.
Names declared_ops() {
  Names names;
  const std::regex name(R"re(name\(\) const override \{ return "(\w+)"; \})re");
  const std::filesystem::path folder = std::filesystem::path(CNN_SOURCE_DIR) / "layers";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".h") {
      continue;
    }
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (std::smatch match; std::regex_search(line, match, name)) {
        names.insert(match[1]);
      }
    }
  }
  return names;
}

Names ops_of_cases() {
  Names names;
  for (const Case& row : all_cases()) {
    const BuiltCase built = build(row, DataType::f32);
    for (const Node& node : built.graph->nodes()) {
      names.emplace(node.op->name());
    }
  }
  return names;
}

TEST(Cases, CoverEveryOp) {
  const Names declared = declared_ops();
  EXPECT_GT(declared.size(), 30);
  Names covered = ops_of_cases();
  covered.insert("all_reduce");  // its result depends on other ranks, so Exchange tests it
  // Slices of a variable depend on its layout, and backends group their sums of squares as they
  // like; the tests of the pass host_variables compare whole updates on every backend.
  covered.insert({"load_variable", "store_variable", "update_slice", "half_sum_of_slices"});
  for (const std::string& name : declared) {
    EXPECT_TRUE(covered.contains(name)) << "no case has the op " << name;
  }
}

TEST(Cases, HaveNamesOfTheirOwn) {
  Names names;
  for (const Case& row : all_cases()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " names two cases";
  }
}

TEST(Cases, HaveAGradientForAllThatIsTrained) {
  for (const Case& row : all_cases()) {
    const BuiltCase built = build(row, DataType::f32);
    for (const std::optional<Value>& gradient : built.gradients) {
      EXPECT_TRUE(gradient) << row.name;
    }
  }
}

}  // namespace
}  // namespace cnn::tests
