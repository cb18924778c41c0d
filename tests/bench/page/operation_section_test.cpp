#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Json profiled_op(const char* name, double seconds) {
  return {{"op", name}, {"nodes", 20}, {"seconds", seconds}, {"flops", 1e9}, {"bytes", 1e7}};
}

Json operations(const std::vector<Json>& ops) { return {{"profile", {{"ops", ops}}}}; }

std::string operations_of_one(const Json& json) {
  const ShownRun runs[] = {{"run", "a", &json}};
  return operation_section(runs);
}

TEST(OperationSection, IsEmptyWithoutAProfile) {
  EXPECT_EQ(operations_of_one({}), "");
  EXPECT_EQ(operations_of_one(operations({})), "");
}

TEST(OperationSection, HasTheCostliestOperationFirst) {
  const std::string table =
      operations_of_one(operations({profiled_op("relu", 0.001), profiled_op("conv", 0.08)}));
  EXPECT_LT(table.find(">conv<"), table.find(">relu<"));
  EXPECT_THAT(table, HasSubstr("<td>20</td><td>80.000</td><td>12.5</td><td>0.1</td><td></td>"));
}

TEST(OperationSection, SaysHowNearItsRooflineAnOperationIs) {
  Json op = profiled_op("conv", 0.08);
  op["roofline_seconds"] = 0.06;
  EXPECT_THAT(operations_of_one(operations({op})), HasSubstr("<td>75</td></tr>"));
}

TEST(OperationSection, ComparesTwoRuns) {
  const Json base = operations({profiled_op("conv", 0.08), profiled_op("relu", 0.01)});
  const Json candidate = operations({profiled_op("conv", 0.10), profiled_op("pool", 0.02)});
  const ShownRun runs[] = {{"base", "a", &base}, {"new", "b", &candidate}};
  const std::string table = operation_section(runs);
  EXPECT_THAT(table, AllOf(HasSubstr("<th>change</th>"), HasSubstr("<td>+25.0 %</td>")));
  const std::string relu = table.substr(table.find(">relu<"));
  EXPECT_THAT(relu.substr(0, relu.find("</tr>")),
              HasSubstr("<td colspan=\"5\">none</td><td></td>"));
}

TEST(OperationSection, TakesNoTimeForNoReasonToDivideByZero) {
  EXPECT_THAT(operations_of_one(operations({profiled_op("conv", 0)})),
              AllOf(Not(HasSubstr("inf")), Not(HasSubstr("nan"))));
}

TEST(OperationSection, EscapesWhatTheFileSays) {
  Json op = profiled_op("<op>", 0.08);
  op["nodes"] = "<script>";
  EXPECT_THAT(operations_of_one(operations({op})),
              AllOf(HasSubstr("&lt;op&gt;"), HasSubstr("&lt;script&gt;"), Not(HasSubstr("<script")),
                    Not(HasSubstr("<op>"))));
}

}  // namespace
}  // namespace cnn::page
