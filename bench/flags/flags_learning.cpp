#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

constexpr Flag optim_rows[] = {
    {.name = "optimizer",
     .target = reaches<&Config::optimizer>,
     .help = "update rule; momentum is Nesterov's",
     .choices = "momentum|sgd|rmsprop|adam"},
    {.name = "init_learning_rate",
     .target = reaches<&Config::init_learning_rate>,
     .help = "learning rate instead of the model's own schedule"},
    {.name = "piecewise_learning_rate_schedule",
     .target = reaches<&Config::piecewise_learning_rate_schedule>,
     .help = "rates and the epochs where they change, such as 0.1;30;0.01;60;0.001"},
    {.name = "num_epochs_per_decay",
     .target = reaches<&Config::num_epochs_per_decay>,
     .help = "epochs between two decays of --init_learning_rate",
     .at_least = 0},
    {.name = "learning_rate_decay_factor",
     .target = reaches<&Config::learning_rate_decay_factor>,
     .help = "what each decay multiplies the rate with",
     .at_least = 0},
    {.name = "num_learning_rate_warmup_epochs",
     .target = reaches<&Config::num_learning_rate_warmup_epochs>,
     .help = "epochs over which a given rate rises from 0",
     .at_least = 0},
    {.name = "minimum_learning_rate",
     .target = reaches<&Config::minimum_learning_rate>,
     .help = "the decay stops at this rate",
     .at_least = 0},
    {.name = "resnet_base_lr",
     .target = reaches<&Config::resnet_base_lr>,
     .help = "rate of the ResNet schedule at batch 256, 0.128 by default"},
    {.name = "momentum",
     .target = reaches<&Config::momentum>,
     .help = "coefficient of --optimizer=momentum"},
    {.name = "rmsprop_decay",
     .target = reaches<&Config::rmsprop_decay>,
     .help = "decay of the mean square gradient of --optimizer=rmsprop"},
    {.name = "rmsprop_momentum",
     .target = reaches<&Config::rmsprop_momentum>,
     .help = "momentum of --optimizer=rmsprop"},
    {.name = "rmsprop_epsilon",
     .target = reaches<&Config::rmsprop_epsilon>,
     .help = "added under the square root of --optimizer=rmsprop",
     .at_least = 0},
    {.name = "adam_beta1",
     .target = reaches<&Config::adam_beta1>,
     .help = "decay of the mean gradient of --optimizer=adam"},
    {.name = "adam_beta2",
     .target = reaches<&Config::adam_beta2>,
     .help = "decay of the mean square gradient of --optimizer=adam"},
    {.name = "adam_epsilon",
     .target = reaches<&Config::adam_epsilon>,
     .help = "added beside the square root of --optimizer=adam",
     .at_least = 0},
    {.name = "gradient_clip",
     .target = reaches<&Config::gradient_clip>,
     .help = "clamp each element of each gradient to [-c, c]; unset = off",
     .at_least = 0},
    {.name = "weight_decay",
     .target = reaches<&Config::weight_decay>,
     .help = "factor of the sum of w^2 / 2 in the loss; batch normalisation is exempt",
     .at_least = 0},
    {.name = "tf_random_seed",
     .target = reaches<&Config::tf_random_seed>,
     .help = "seed of weights, synthetic data and dropout"},
};

}  // namespace

std::vector<FlagGroup> learning_flags() {
  return {{"optim", "Optimizer and learning rate", optim_rows}};
}

}  // namespace cnn::bench
