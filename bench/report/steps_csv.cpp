#include "bench/report/steps_csv.h"

#include <array>

namespace cnn::bench {
namespace {

constexpr std::array columns{
    "step",       "seconds",       "images_per_sec",     "ended", "loss",  "base_loss",
    "total_loss", "learning_rate", "input_wait_seconds", "top_1", "top_5", "disturbed",
    "profiled"};

}  // namespace

std::string steps_csv(const Json& result) {
  std::string text;
  for (const char* column : columns) {
    text += (text.empty() ? "" : ",") + std::string(column);
  }
  text += '\n';
  if (!result.contains("steps")) {
    return text;
  }
  for (const Json& step : result.at("steps")) {
    std::string line;
    for (const char* column : columns) {
      const auto found = step.find(column);
      const std::string told = found == step.end() ? "null" : found->dump();  // nan becomes null
      line += (column == columns.front() ? "" : ",") + (told == "null" ? std::string() : told);
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace cnn::bench
