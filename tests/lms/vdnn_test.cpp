#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using tests::chain_step;
using tests::lines;
using tests::StepCase;
using tests::texts;

TEST(Vdnn, EndsALayerWithTheCopyOfItsInputAndStartsCopiesBackALayerAhead) {
  const StepCase c = chain_step(4);
  EXPECT_THAT(
      texts(*c.graph, vdnn_conv(c.request()).schedule),
      ElementsAre("conv#0", "conv#1", "offload conv#0", "conv#2 <2", "offload conv#1", "conv#3 <4",
                  "offload conv#2", "fetch conv#2 <5", "loss_backward#4", "fetch conv#1 <8",
                  "conv_backward_weights#5", "descend#6", "conv_backward_data#7",
                  "fetch conv#0 <12", "conv_backward_weights#8", "descend#9",
                  "conv_backward_data#10", "conv_backward_weights#11", "descend#12",
                  "conv_backward_data#13", "conv_backward_weights#14", "descend#15"));
}

// Returns a step of conv, relu and pool in which each gradient reads its layer's input.
StepCase mixed_step() {
  StepCase c;
  const Value a = c.make("conv", {c.images(), c.weights(1)});
  const Value b = c.make("relu", {a});
  const Value d = c.make("conv", {b, c.weights(1)});
  const Value e = c.make("max_pool", {d});
  const Value first = c.make("loss_backward", {c.make("loss", {e})});
  Value dy = c.make("max_pool_backward", {first, d});
  dy = c.make("conv_backward_weights", {dy, b});
  c.make("relu_backward", {dy, a});
  c.settle(first);
  return c;
}

TEST(Vdnn, OffloadsInputsOfConvolutionsOrOfAllLayers) {
  const StepCase c = mixed_step();
  EXPECT_EQ(summarize(*c.graph, vdnn_conv(c.request()).schedule).swap_outs, 1U);
  const Summary all = summarize(*c.graph, vdnn_all(c.request()).schedule);
  EXPECT_EQ(all.swap_outs, 3U);
  EXPECT_EQ(all.swap_ins, 3U);
}

TEST(Vdnn, TriesNoneThenConvolutionsThenAll) {
  StepCase c = chain_step(8);
  const std::size_t unlimited = c.peak(c.schedule).device_bytes;
  c.budget.device = unlimited;
  EXPECT_THAT(lines(vdnn_dynamic(c.request())), ElementsAre("vdnn_dynamic chose none"));
  c.budget.device = unlimited - 1;
  EXPECT_THAT(lines(vdnn_dynamic(c.request())), ElementsAre("vdnn_dynamic chose vdnn_conv"));
  c.budget.host = 0;
  EXPECT_THAT(lines(vdnn_dynamic(c.request())), ElementsAre("vdnn_dynamic chose vdnn_all"))
      << "the last choice is taken even if it does not fit";
}

TEST(Vdnn, LetsNoMoreTensorsGoThanAllowed) {
  StepCase c = chain_step(6);
  c.options.n_tensors = 2;
  EXPECT_EQ(summarize(*c.graph, vdnn_all(c.request()).schedule).swapped_tensors, 2U);
}

}  // namespace
}  // namespace cnn::lms
