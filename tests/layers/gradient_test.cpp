// Compares the gradients that ops build with central differences of sum(y * dy), both by reference
// loops.

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/initializer.h"
#include "tests/layers/cases.h"
#include "tests/support/interpreter.h"

namespace cnn::tests {
namespace {

// The result of one evaluation of sum(y * dy).
struct Sample {
  double sum = 0;
  double noise = 0;  // the sum's error from rounding y to f32
  // The side of every kink: zero after a ReLU, its upper limit, and the maximum of each pool.
  std::vector<bool> side;
};

// Evaluates sum(y * dy) as a function of one element by running the forward nodes again.
class Loss {
 public:
  Loss(const BuiltCase& built, Interpreter& values) : built_(built), values_(values) {
    const NodeId last = *built.graph->producer(built.y->id);
    forward_ = built.graph->nodes().first(index_of(last) + 1);
  }

  Sample at(float& element, float value) {
    const float before = std::exchange(element, value);
    Sample sample;
    for (const Node& node : forward_) {
      values_.run(node);
      note_side(node, sample.side);
    }
    element = before;
    const auto y = values_.floats(*built_.y);
    const auto dy = values_.floats(*built_.dy);
    double squares = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double term = static_cast<double>(y[i]) * dy[i];
      sample.sum += term;
      squares += term * term;
    }
    sample.noise = 0x1p-23 * std::sqrt(squares);
    return sample;
  }

 private:
  // Returns the upper limit of what the node outputs; infinity: there is none.
  static float limit_of(const Node& node) {
    if (const auto* relu = dynamic_cast<const layers::Relu*>(node.op.get())) {
      return relu->limit;
    }
    const auto* norm = dynamic_cast<const layers::BatchNorm*>(node.op.get());
    return norm != nullptr ? norm->attributes.limit : std::numeric_limits<float>::infinity();
  }

  void note_side(const Node& node, std::vector<bool>& side) const {
    const float limit = limit_of(node);
    for (const TensorId output : node.outputs) {
      const TensorView view = values_.view(output);
      if (view.desc.type == DataType::f32) {
        for (const float value : view.as<float>()) {
          side.push_back(value == 0);
          side.push_back(value == limit);
        }
      } else {
        for (std::size_t byte = 0; byte < view.desc.bytes(); ++byte) {
          for (int bit = 0; bit < 8; ++bit) {
            side.push_back((std::to_integer<int>(view.data[byte]) >> bit & 1) != 0);
          }
        }
      }
    }
  }

  const BuiltCase& built_;
  Interpreter& values_;
  std::span<const Node> forward_;
};

struct Slope {
  double value = 0, noise = 0;
};

// Returns the central difference over the widest step that crosses no kink, or nothing if all do.
std::optional<Slope> slope(Loss& loss, float& element) {
  for (const float step : {0x1p-7F, 0x1p-9F, 0x1p-11F}) {
    const float up = element + step;
    const float down = element - step;
    const Sample above = loss.at(element, up);
    const Sample below = loss.at(element, down);
    if (above.side == below.side) {
      const double width = static_cast<double>(up) - down;
      return Slope{(above.sum - below.sum) / width, 4 * above.noise / width};
    }
  }
  return std::nullopt;
}

double root_mean_square(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) {
    sum += static_cast<double>(value) * value;
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// Compares some elements of one gradient and returns how many it could compare.
int check_some(Loss& loss, std::span<float> x, std::span<const float> gradient) {
  constexpr std::size_t samples = 10;
  const double scale = root_mean_square(gradient);
  int compared = 0;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const std::size_t i = layers::random_bits(42, sample) % x.size();
    if (const std::optional<Slope> numeric = slope(loss, x[i])) {
      ++compared;
      // The third derivative causes an error of a few thousandths.
      const double allowed = 0.005 * std::max(std::abs(numeric->value), scale) + numeric->noise;
      EXPECT_NEAR(gradient[i], numeric->value, allowed) << "element " << i;
    }
  }
  return compared;
}

class Gradient : public testing::TestWithParam<Case> {};

TEST_P(Gradient, AgreesWithCentralDifferences) {
  const BuiltCase built = build(GetParam(), DataType::f32);
  Interpreter values(*built.graph);
  values.run();
  Loss loss(built, values);
  for (std::size_t i = 0; i < built.wrt.size(); ++i) {
    const std::string& name = built.graph->info(built.wrt[i].id).name;
    SCOPED_TRACE(name);
    ASSERT_TRUE(built.gradients[i]);
    EXPECT_GE(check_some(loss, values.floats(built.wrt[i]), values.floats(*built.gradients[i])), 5)
        << "too few elements lie on smooth stretches";
  }
}

std::vector<Case> small_cases_with_gradient() {
  std::vector<Case> result = all_cases();
  std::erase_if(result, [](const Case& row) {
    // Rounding to bf16 makes a step function, which differences cannot follow.
    return row.weight != Weight::small || row.name == "convert_to_bf16_and_back" ||
           !build(row, DataType::f32).y;
  });
  return result;
}

std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Reference, Gradient, testing::ValuesIn(small_cases_with_gradient()),
                         case_name);

}  // namespace
}  // namespace cnn::tests
