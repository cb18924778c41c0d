#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cnn::layers {

// The optimizers, in the order of their table rows.
enum class Rule : std::uint8_t { momentum, sgd, rmsprop, adam };

struct UpdateAttributes {
  Rule rule = Rule::sgd;
  double momentum = 0.9;
  double rmsprop_decay = 0.9, rmsprop_momentum = 0.9, rmsprop_epsilon = 1.0;
  double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8;
  double weight_decay = 0;
  std::optional<double> clip;         // clamps every element of the whole gradient to [-clip, clip]
  double loss_scale = 1;              // divides the gradients
  bool automatic_loss_scale = false;  // the scale is a state; see the inputs of Update
  std::vector<bool> decay;            // by parameter: takes part in the L2 term
  std::vector<std::size_t> copied;    // parameters whose 16-bit copy the update also writes
};

// The constants of a rule, under common names.
struct RuleFactors {
  double momentum = 0;
  double keep0 = 0, keep1 = 0;  // decay of slots 0 and 1 per step; new values enter with 1 - keep
  double epsilon = 0;
};

// The state of one weight during an update.
struct Weight {
  double value = 0;
  double gradient = 0;  // complete and clipped
  float *slot0 = nullptr, *slot1 = nullptr;
};

// One row per optimizer: its command line name, its slots per parameter, by their checkpoint names
// ("<parameter>/Momentum") and with their initial values, and its rule.
struct RuleRow {
  struct Slot {
    std::string_view suffix;
    double start = 0;
  };
  std::string_view name;
  Rule rule{};
  std::vector<Slot> slots;
  RuleFactors (*factors)(const UpdateAttributes& attributes) = nullptr;
  // Writes the slots and returns the new value of the weight.
  double (*step)(const RuleFactors& by, double rate, const Weight& weight) = nullptr;
  bool has_powers = false;  // of both betas, for Adam's bias correction
};

// Returns the table in the order of Rule; --optimizer takes these names and the help lists them.
const std::vector<RuleRow>& rules();
const RuleRow& row_of(Rule rule);
const RuleRow& find_rule(std::string_view name);  // throws Error with all names

}  // namespace cnn::layers
