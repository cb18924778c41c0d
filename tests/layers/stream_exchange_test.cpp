#include "layers/stream_exchange.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layers/all_reduce.h"
#include "tests/support/op_runner.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

// Multiplies by the factor, like a sum over one rank, and logs its calls.
class StreamCommunicatorLog final : public StreamCommunicator {
 public:
  void prepare(std::size_t bucket, std::size_t elements) override {
    calls.push_back("prepare " + std::to_string(bucket) + " of " + std::to_string(elements));
  }
  void all_reduce(Stream& /*stream*/, std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override {
    std::string call = "reduce " + std::to_string(bucket) + ":";
    for (const std::span<float>& piece : pieces) {
      call += " " + std::to_string(piece.size());
      for (float& value : piece) {
        value *= factor;
      }
    }
    calls.push_back(call);
  }
  std::vector<std::string> calls;
};

// Fixture with the kernel of one bucket that holds tensors of three and four elements.
class StreamExchangeOfABucket : public ::testing::Test {
 protected:
  void SetUp() override {
    add_stream_exchange(table, communicator);
    kernel = table.make(op, signature);
  }
  static TensorView view(std::vector<float>& values) {
    return {{Shape{static_cast<std::int64_t>(values.size())}},
            reinterpret_cast<std::byte*>(values.data())};
  }

  std::shared_ptr<StreamCommunicatorLog> communicator = std::make_shared<StreamCommunicatorLog>();
  KernelTable table;
  AllReduce op{2, 0.5F};
  Signature signature{.in = {{Shape{3}}, {Shape{4}}}, .out = {{Shape{3}}, {Shape{4}}}};
  std::unique_ptr<Kernel> kernel;
};

TEST_F(StreamExchangeOfABucket, IsPreparedOnceBeforeAnyRun) {
  EXPECT_THAT(communicator->calls, ElementsAre("prepare 2 of 7"));
}

TEST_F(StreamExchangeOfABucket, IsReducedInThePlaceOfItsOutputs) {
  std::vector<float> in{8, 2, 3}, out(3), both(4, 1.0F);
  tests::ImmediateStream stream;
  for (int step = 0; step < 2; ++step) {
    std::ranges::fill(both, 1.0F);
    kernel->run(stream, {.in = {view(in), view(both)}, .out = {view(out), view(both)}});
    EXPECT_THAT(in, ElementsAre(8, 2, 3)) << "it is an operand, not a result";
    EXPECT_THAT(out, ElementsAre(4, 1, 1.5F));
    EXPECT_THAT(both, ElementsAre(0.5F, 0.5F, 0.5F, 0.5F));
  }
  EXPECT_THAT(communicator->calls, ElementsAre("prepare 2 of 7", "reduce 2: 3 4", "reduce 2: 3 4"));
}

TEST_F(StreamExchangeOfABucket, TakesOperandsAsTheyLie) {
  Signature request{.in = {{.shape = {2, 3, 1, 1}, .layout = Layout::nhwc}}};
  request.out = request.in;
  request.out[0].layout = Layout::nchw;
  const std::optional<KernelSpec> spec = table.describe(op, request);
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->in, request.in);
  EXPECT_EQ(spec->out, request.in) << "an element-wise sum converts nothing";
}

}  // namespace
}  // namespace cnn::layers
