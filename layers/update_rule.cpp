#include "layers/update_rule.h"

#include <cmath>
#include <string>

#include "runtime/error.h"

namespace cnn::layers {

namespace {

RuleFactors momentum_factors(const UpdateAttributes& attributes) {
  return {.momentum = attributes.momentum};
}

double step_momentum(const RuleFactors& by, double rate, const Weight& w) {
  float& a = *w.slot0;
  a = static_cast<float>(by.momentum * a + w.gradient);
  return w.value - rate * w.gradient - rate * by.momentum * a;
}

RuleFactors no_factors(const UpdateAttributes& /*of*/) { return {}; }

double step_sgd(const RuleFactors& /*by*/, double rate, const Weight& w) {
  return w.value - rate * w.gradient;
}

RuleFactors rmsprop_factors(const UpdateAttributes& attributes) {
  return {.momentum = attributes.rmsprop_momentum,
          .keep0 = attributes.rmsprop_decay,
          .epsilon = attributes.rmsprop_epsilon};
}

double step_rmsprop(const RuleFactors& by, double rate, const Weight& w) {
  float &s = *w.slot0, &b = *w.slot1;
  s = static_cast<float>(by.keep0 * s + (1 - by.keep0) * w.gradient * w.gradient);
  b = static_cast<float>(by.momentum * b + rate * w.gradient / std::sqrt(s + by.epsilon));
  return w.value - b;
}

RuleFactors adam_factors(const UpdateAttributes& attributes) {
  return {.keep0 = attributes.adam_beta1,
          .keep1 = attributes.adam_beta2,
          .epsilon = attributes.adam_epsilon};
}

double step_adam(const RuleFactors& by, double rate, const Weight& w) {
  float &m = *w.slot0, &v = *w.slot1;
  m = static_cast<float>(by.keep0 * m + (1 - by.keep0) * w.gradient);
  v = static_cast<float>(by.keep1 * v + (1 - by.keep1) * w.gradient * w.gradient);
  return w.value - rate * m / (std::sqrt(v) + by.epsilon);
}

}  // namespace

const std::vector<RuleRow>& rules() {
  static const std::vector<RuleRow> rows{
      {"momentum", Rule::momentum, {{"Momentum", 0}}, momentum_factors, step_momentum},
      {"sgd", Rule::sgd, {}, no_factors, step_sgd},
      {"rmsprop", Rule::rmsprop, {{"RMSProp", 1}, {"RMSProp_1", 0}}, rmsprop_factors, step_rmsprop},
      {"adam", Rule::adam, {{"Adam", 0}, {"Adam_1", 0}}, adam_factors, step_adam, true},
  };
  return rows;
}

const RuleRow& row_of(Rule rule) { return rules()[static_cast<std::size_t>(rule)]; }

const RuleRow& find_rule(std::string_view name) {
  std::string names;
  for (const RuleRow& row : rules()) {
    if (row.name == name) {
      return row;
    }
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error("no optimizer is called '" + std::string(name) + "'; choose one of " + names);
}

}  // namespace cnn::layers
