#include "bench/plan/variable_io.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "layers/initializer.h"
#include "runtime/cpu/device.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

constexpr std::size_t workspace_bytes = 1000;

// A kernel that converts between row-major f32 and bf16 and overwrites its workspace.
class ConvertKernel final : public Kernel {
 public:
  void run(Stream& stream, const Operands& operands) override {
    stream.host([&operands] {
      std::memset(operands.workspace.data(), 0xFF, operands.workspace.size());
      const TensorView& in = operands.in[0];
      const TensorView& out = operands.out[0];
      if (in.desc.type == DataType::f32) {
        std::ranges::transform(in.as<float>(), out.as<BFloat16>().begin(), to_bf16);
      } else {
        std::ranges::transform(in.as<BFloat16>(), out.as<float>().begin(),
                               [](BFloat16 value) { return to_float(value); });
      }
    });
  }
};

KernelTable kernels() {
  KernelTable table;
  table.otherwise(
      [](const Op&, const Signature& request) {
        return KernelSpec{.workspace = workspace_bytes, .in = request.in, .out = request.out};
      },
      [](const Op&, const Signature&) { return std::make_unique<ConvertKernel>(); });
  return table;
}

// Fixture that divides the device's memory into variables, an arena and canaries.
class VariableIoTest : public testing::Test {
 protected:
  void start() {
    variables_.emplace(graph_);
    arena_bytes_ = variable_io_bytes(table_, *variables_);
    const std::size_t all = variables_->bytes() + arena_bytes_ + canary_bytes;
    device_.emplace(CpuOptions{.memory_limit = all});
    storage_ = device_->allocate(all);
    variables_->attach(storage_.data());
    std::memset(canaries(), canary, canary_bytes);
    io_.emplace(*device_, table_, *variables_,
                std::span(storage_.data() + variables_->bytes(), arena_bytes_));
  }
  std::byte* canaries() { return storage_.data() + variables_->bytes() + arena_bytes_; }
  bool canaries_are_intact() {
    return std::all_of(canaries(), canaries() + canary_bytes,
                       [](std::byte b) { return b == std::byte{canary}; });
  }
  std::vector<float> read(const char* name, std::size_t count) {
    std::vector<float> values(count);
    io_->read(*variables_->find(name), values);
    return values;
  }

  static constexpr std::size_t canary_bytes = 4096;
  static constexpr unsigned char canary = 0xA5;

  Graph graph_;
  KernelTable table_ = kernels();
  std::optional<Variables> variables_;
  std::size_t arena_bytes_ = 0;
  std::optional<CpuDevice> device_;
  Buffer storage_;
  std::optional<VariableIo> io_;
};

TEST_F(VariableIoTest, NeedsNothingForPlainVariables) {
  graph_.parameter("w", {.shape = {3, 5}}, {});
  start();
  EXPECT_EQ(arena_bytes_, 0U);
  io_->write(*variables_->find("w"), std::vector<float>(15, 2));
  EXPECT_EQ(read("w", 15), std::vector<float>(15, 2));
  EXPECT_EQ(io_->measured_peak_bytes(), 0U);
}

TEST_F(VariableIoTest, StaysInItsArenaAndTakesNothingElseOfTheDevice) {
  graph_.parameter("small", {.shape = {3}, .type = DataType::bf16}, {});
  graph_.parameter("large", {.shape = {9, 5}, .type = DataType::bf16}, {});
  start();
  EXPECT_EQ(arena_bytes_, aligned(45 * sizeof(float)) + workspace_bytes)
      << "the arena fits the larger variable";
  std::vector<float> values(45);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  io_->write(*variables_->find("large"), values);
  EXPECT_EQ(read("large", 45), values);
  EXPECT_TRUE(canaries_are_intact());
  EXPECT_EQ(io_->measured_peak_bytes(), arena_bytes_);
}

TEST_F(VariableIoTest, MovesALargeStateInParts) {
  constexpr std::int64_t rows = 20;
  constexpr std::int64_t columns = std::int64_t{1} << 20;  // 80 MiB of row-major values
  const Initializer normal{Initializer::Kind::truncated_normal, 127, 60};
  graph_.state("images", {.shape = {rows, columns}, .type = DataType::bf16}, normal, true);
  start();
  EXPECT_EQ(arena_bytes_, (std::size_t{64} << 20U) + workspace_bytes);
  io_->initialize(7);
  EXPECT_TRUE(canaries_are_intact());
  std::vector<float> expected(static_cast<std::size_t>(rows * columns));
  layers::fill(normal, 7, "images", expected);
  const std::vector<float> found = read("images", expected.size());
  EXPECT_TRUE(std::ranges::equal(found, expected, {}, {},
                                 [](float value) { return to_float(to_bf16(value)); }));
}

TEST_F(VariableIoTest, RefusesAnArenaThatIsTooSmall) {
  graph_.parameter("w", {.shape = {3, 5}, .type = DataType::bf16}, {});
  start();
  EXPECT_THROW(VariableIo(*device_, table_, *variables_, {storage_.data(), arena_bytes_ - 1}),
               Error);
}

TEST_F(VariableIoTest, SaysWhatNoKernelConverts) {
  graph_.parameter("w", {.shape = {3}, .type = DataType::bf16}, {});
  try {
    static_cast<void>(variable_io_bytes(KernelTable(), Variables(graph_)));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no kernel converts f32[3] nchw to bf16[3] nchw");
  }
}

}  // namespace
}  // namespace cnn::bench
