// Tests of the exchange of gradients on a device, as far as it needs none: the calls that its
// kernel makes, and the wait for the host.
#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "layers/all_reduce.h"
#include "layers/cuda/host_flag.h"
#include "layers/stream_exchange.h"
#include "tests/support/grid/on_grid.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

using testing::ElementsAre;

class RecordingCommunicator final : public StreamCommunicator {
 public:
  void prepare(std::size_t bucket, std::size_t elements) override {
    calls.push_back("prepare " + std::to_string(bucket) + " of " + std::to_string(elements));
  }
  void all_reduce(Stream& stream, std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override {
    calls.push_back("reduce " + std::to_string(bucket) + " in " + std::to_string(pieces.size()));
    stream.host([first = pieces[0].data(), factor] { *first *= factor; });
  }
  std::vector<std::string> calls;
};

TEST(CudaExchange, ReducesABucketInThePlaceOfItsOutputs) {
  const auto communicator = std::make_shared<RecordingCommunicator>();
  KernelTable table;
  layers::add_stream_exchange(table, communicator);
  const layers::AllReduce op(2, 0.5F);
  const Signature signature{.in = {{Shape{3}}, {Shape{4}}}, .out = {{Shape{3}}, {Shape{4}}}};
  ASSERT_TRUE(table.describe(op, signature).has_value());
  const auto kernel = table.make(op, signature);
  std::vector<float> in{8, 2, 3}, out(3), both(4, 1.0F);
  const auto view = [](std::vector<float>& values) {
    return TensorView{{Shape{static_cast<std::int64_t>(values.size())}},
                      reinterpret_cast<std::byte*>(values.data())};
  };
  const Operands operands{.in = {view(in), view(both)}, .out = {view(out), view(both)}};
  ImmediateStream stream;
  kernel->run(stream, operands);
  EXPECT_THAT(communicator->calls, ElementsAre("prepare 2 of 7", "reduce 2 in 2"));
  EXPECT_THAT(out, ElementsAre(4, 2, 3));
}

TEST(CudaExchange, WaitsForTheFlagAndTakesItBack) {
  grid::GridStream stream(grid::Order{});
  std::array<std::uint32_t, 3> flag{1, 0, 0};
  layers::cuda::wait_for_flag(stream, flag.data());
  EXPECT_THAT(flag, ElementsAre(0, 0, 0));
}

TEST(CudaExchange, WaitsNoMoreOnceTheHostHasFailed) {
  grid::GridStream stream(grid::Order{});
  std::array<std::uint32_t, 3> flag{0, 1, 0};
  for (int wait = 0; wait < 2; ++wait) {
    layers::cuda::wait_for_flag(stream, flag.data());
    EXPECT_THAT(flag, ElementsAre(0, 1, 0)) << "later waits end too";
  }
}

}  // namespace
}  // namespace cnn::tests
