#include <gtest/gtest.h>
#include <string>

#include "bench/flags/config.h"
#include "bench/session/team.h"

namespace cnn::bench {
namespace {

Config exchange_of_four(VariableUpdate update) {
  Config config;
  config.num_gpus = 4;
  config.variable_update = update;
  return config;
}

TEST(ExchangeText, SaysWhetherGradientsAreAveragedOrSummed) {
  EXPECT_EQ(exchange_text(exchange_of_four(VariableUpdate::parameter_server), nullptr),
            "4 ranks on threads of this process: gradients are averaged");
  EXPECT_EQ(exchange_text(exchange_of_four(VariableUpdate::replicated), nullptr),
            "4 ranks on threads of this process: gradients and weight decay are summed, as the "
            "original's replicated does");
}

TEST(ExchangeText, SaysThatCopiesExchangeNothing) {
  EXPECT_EQ(exchange_text(exchange_of_four(VariableUpdate::independent), nullptr),
            "4 ranks on threads of this process: nothing is exchanged, each is a copy of the run "
            "on one device");
}

TEST(ExchangeText, SaysThatInferenceExchangesNothing) {
  Config config = exchange_of_four(VariableUpdate::parameter_server);
  config.mode.forward_only = true;
  EXPECT_EQ(exchange_text(config, nullptr),
            "4 ranks on threads of this process: nothing is exchanged, each computes examples of "
            "its own");
}

TEST(ExchangeText, SaysThatRanksOfAMajorityTrainTheSame) {
  Config config = exchange_of_four(VariableUpdate::independent);
  config.comm.check = CommCheck::majority;
  EXPECT_EQ(exchange_text(config, nullptr),
            "4 ranks on threads of this process: each computes the same alone, and hashes of all "
            "tensors are compared");
}

TEST(ExchangeText, NamesTheNumaNodesOfRanksThatExchange) {
  Config config = exchange_of_four(VariableUpdate::parameter_server);
  config.comm.numa_nodes = {0, 0, 1, 1};
  EXPECT_EQ(exchange_text(config, nullptr),
            "4 ranks on threads of this process: gradients are averaged; ranks 0-1 | 2-3 on 2 "
            "NUMA nodes");
  config.variable_update = VariableUpdate::independent;
  EXPECT_EQ(exchange_text(config, nullptr).find("NUMA"), std::string::npos);
}

}  // namespace
}  // namespace cnn::bench
