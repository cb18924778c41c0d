#include <algorithm>
#include <string_view>

#include "bench/flags/flag_table.h"
#include "models/catalog.h"

namespace cnn::bench {

namespace {

using enum FlagSupport;
using enum Type;

template <layers::Rule rule>
bool trains_without(const Config& config) {
  return config.optimizer.rule != rule;
}

constexpr NoEffectRule no_momentum{trains_without<layers::Rule::momentum>,
                                   "--momentum acts with --optimizer=momentum only"};
constexpr NoEffectRule no_rmsprop{
    trains_without<layers::Rule::rmsprop>,
    "--rmsprop_decay, --rmsprop_momentum and --rmsprop_epsilon act with --optimizer=rmsprop only"};
constexpr NoEffectRule no_adam{
    trains_without<layers::Rule::adam>,
    "--adam_beta1, --adam_beta2 and --adam_epsilon act with --optimizer=adam only"};

bool has_own_schedule(const Config& config) {
  return config.rate.init_learning_rate || config.rate.piecewise_learning_rate_schedule;
}

// Returns whether the model has another schedule than resnet's. An unknown model is refused
// elsewhere.
bool has_other_rule(const Config& config) {
  const data::Row& row = config.data.row();
  const std::string_view set = row.has_networks ? row.name : config.data.tensors_as->name;
  return std::ranges::any_of(models::all(), [&](const models::Model& model) {
    return model.data_set == set && model.name == config.model.name &&
           model.rate.rule != models::RateRule::resnet;
  });
}

constexpr NoEffectRule no_rate_to_warm_up{
    [](const Config& c) { return !has_own_schedule(c); },
    "--num_learning_rate_warmup_epochs acts with --init_learning_rate or "
    "--piecewise_learning_rate_schedule only"};
constexpr NoEffectRule no_resnet_schedule{
    [](const Config& c) { return has_own_schedule(c) || has_other_rule(c); },
    "--resnet_base_lr acts on the schedule of the ResNet models on ImageNet only, and not with "
    "--init_learning_rate or --piecewise_learning_rate_schedule"};

constexpr Flag optim_rows[] = {
    {.name = "optimizer",
     .help = "update rule; momentum is Nesterov's",
     .member = &at<&Config::optimizer, &OptimizerOptions::rule>},
    {.name = "init_learning_rate",
     .help = "learning rate instead of the model's own schedule",
     .member = &at<&Config::rate, &models::LearningRateOptions::init_learning_rate>},
    {.name = "piecewise_learning_rate_schedule",
     .help = "rates and the epochs where they change, such as 0.1;30;0.01;60;0.001",
     .member = &at<&Config::rate, &models::LearningRateOptions::piecewise_learning_rate_schedule>},
    {.name = "num_epochs_per_decay",
     .help = "epochs between two decays of --init_learning_rate",
     .range = at_least(0),
     .member = &at<&Config::rate, &models::LearningRateOptions::num_epochs_per_decay>},
    {.name = "learning_rate_decay_factor",
     .help = "what each decay multiplies the rate with",
     .range = at_least(0),
     .member = &at<&Config::rate, &models::LearningRateOptions::learning_rate_decay_factor>},
    {.name = "num_learning_rate_warmup_epochs",
     .help = "epochs over which a given rate rises from 0",
     .range = at_least(0),
     .member = &at<&Config::rate, &models::LearningRateOptions::num_learning_rate_warmup_epochs>,
     .no_effect = {no_rate_to_warm_up}},
    {.name = "minimum_learning_rate",
     .help = "the decay stops at this rate",
     .range = at_least(0),
     .member = &at<&Config::rate, &models::LearningRateOptions::minimum_learning_rate>},
    {.name = "resnet_base_lr",
     .help = "rate of the ResNet schedule at batch 256, 0.128 by default",
     .member = &at<&Config::rate, &models::LearningRateOptions::resnet_base_lr>,
     .no_effect = {no_resnet_schedule}},
    {.name = "momentum",
     .help = "coefficient of --optimizer=momentum",
     .member = &at<&Config::optimizer, &OptimizerOptions::momentum>,
     .no_effect = {no_momentum}},
    {.name = "rmsprop_decay",
     .help = "decay of the mean square gradient of --optimizer=rmsprop",
     .range = between(0, 1),
     .member = &at<&Config::optimizer, &OptimizerOptions::rmsprop_decay>,
     .no_effect = {no_rmsprop}},
    {.name = "rmsprop_momentum",
     .help = "momentum of --optimizer=rmsprop",
     .member = &at<&Config::optimizer, &OptimizerOptions::rmsprop_momentum>,
     .no_effect = {no_rmsprop}},
    {.name = "rmsprop_epsilon",
     .help = "added under the square root of --optimizer=rmsprop",
     .range = at_least(0),
     .member = &at<&Config::optimizer, &OptimizerOptions::rmsprop_epsilon>,
     .no_effect = {no_rmsprop}},
    {.name = "adam_beta1",
     .help = "decay of the mean gradient of --optimizer=adam",
     .range = from_to_below(0, 1),  // the bias correction divides by 1 - beta1^t
     .member = &at<&Config::optimizer, &OptimizerOptions::adam_beta1>,
     .no_effect = {no_adam}},
    {.name = "adam_beta2",
     .help = "decay of the mean square gradient of --optimizer=adam",
     .range = from_to_below(0, 1),
     .member = &at<&Config::optimizer, &OptimizerOptions::adam_beta2>,
     .no_effect = {no_adam}},
    {.name = "adam_epsilon",
     .help = "added beside the square root of --optimizer=adam",
     .range = at_least(0),
     .member = &at<&Config::optimizer, &OptimizerOptions::adam_epsilon>,
     .no_effect = {no_adam}},
    {.name = "gradient_clip",
     .help = "clamp each element of each gradient to [-c, c]; unset = off",
     .range = at_least(0),
     .member = &at<&Config::optimizer, &OptimizerOptions::gradient_clip>},
    {.name = "weight_decay",
     .help =
         "factor of the sum of w^2 / 2 in the loss; parameters of batch norms are exempt but in "
         "mobilenet, nasnet and official_resnet networks",
     .range = at_least(0),
     .member = &at<&Config::optimizer, &OptimizerOptions::weight_decay>},
    {.name = "tf_random_seed",
     .help = "seed of weights, synthetic data and dropout",
     .member = &at<&Config::seed>},
};

}  // namespace

std::vector<FlagGroup> learning_flags() {
  return {{"optim", "Optimizer and learning rate", optim_rows}};
}

}  // namespace cnn::bench
