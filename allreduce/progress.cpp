#include "allreduce/progress.h"

namespace cnn::allreduce {
namespace {

constexpr unsigned phase_bits = 2;

}  // namespace

std::uint64_t progress_at(Phase phase, std::int64_t step) {
  return static_cast<std::uint64_t>(step) << phase_bits | static_cast<std::uint64_t>(phase);
}

std::string progress_text(std::uint64_t progress) {
  const std::string step = std::to_string((progress >> phase_bits) + 1);
  switch (static_cast<Phase>(progress & ((1U << phase_bits) - 1))) {
    case Phase::input:
      return "waits for the examples of step " + step;
    case Phase::compute:
      return "computes step " + step;
    case Phase::between:
      return "has ended step " + step;
    case Phase::unknown:
      break;
  }
  return {};
}

std::string position_text(const ExchangePosition& position) {
  const std::string bucket = "bucket " + std::to_string(position.bucket);
  const std::string when =
      position.progress == 0
          ? "reduction " + std::to_string(position.reductions) + " of " + bucket
          : "step " + std::to_string((position.progress >> phase_bits) + 1) + ", " + bucket;
  return when + ", " + std::string(position.phase);
}

}  // namespace cnn::allreduce
