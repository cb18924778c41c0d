#include "lms/catalog.h"

#include <algorithm>
#include <string>

#include "lms/policies.h"
#include "runtime/error.h"

namespace cnn::lms {

namespace {

constexpr PolicyRow rows[] = {
    {.name = "planned", .plan = planned, .places_waits = true, .orders = true, .recomputes = true},
    {"none", none},
    {"tflms1", tflms1},
    {"tflms2", tflms2},
    {"caffe", caffe},
    {"reclaim", reclaim},
    {"vdnn_all", vdnn_all},
    {"vdnn_conv", vdnn_conv},
    {"vdnn_dynamic", vdnn_dynamic},
    {"window", window},
    {.name = "capuchin", .plan = capuchin, .recomputes = true},
    {.name = "recompute", .plan = recompute, .recomputes = true},
    {.name = "dtr", .plan = dtr, .recomputes = true},
    {.name = "superneurons", .plan = superneurons, .recomputes = true},
};

}  // namespace

std::span<const PolicyRow> policies() { return rows; }

const PolicyRow& find_policy(std::string_view name) {
  const auto* const row = std::ranges::find(rows, name, &PolicyRow::name);
  if (row != std::end(rows)) {
    return *row;
  }
  std::string names;
  for (const PolicyRow& known : rows) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw Error("there is no LMS policy '" + std::string(name) + "'; use one of: " + names);
}

// Returns the step unchanged.
Plan none(const Request& request) { return {.schedule = request.schedule, .notes = {}}; }

}  // namespace cnn::lms
