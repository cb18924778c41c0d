#include "layers/cpu/tile_dense.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "layers/cpu/isa.h"
#include "layers/cpu/rows.h"
#include "layers/dense.h"
#include "tests/layers/cpu/bf16_words.h"
#include "tests/layers/cpu/own_kernels.h"
#include "tests/support/numeric.h"

namespace cnn::tests {
namespace {

using layers::cpu::TileDenseBackwardData;
using layers::cpu::TileDenseBackwardWeights;
using layers::cpu::TileDenseForward;
using layers::cpu::TileDenseProblem;

struct DenseCase {
  std::string name;
  TileDenseProblem problem;
};

// The shapes differ in tiles of rows, last rows, slabs, and chunks of inputs that end early. The
// gradient of the last one is stored past the caches.
std::vector<DenseCase> dense_tile_cases() {
  return {
      {"one_row", {.rows = 1, .ins = 32, .outs = 64}},
      {"one_tile", {.rows = 16, .ins = 64, .outs = 64, .bias = true}},
      {"two_tiles", {.rows = 17, .ins = 160, .outs = 128, .bias = true, .relu = true}},
      {"three_tiles", {.rows = 47, .ins = 96, .outs = 192, .relu = true}},
      {"four_tiles", {.rows = 64, .ins = 256, .outs = 64, .bias = true, .relu = true}},
      {"streamed", {.rows = 5, .ins = 2080, .outs = 2048, .bias = true}},
  };
}

// Eighths between -1 and 1, whose products and sums are exact in f32.
HostTensor eighths(std::int64_t count, std::uint64_t stream) {
  HostTensor values = draws({count}, DataType::f32, stream);
  for (float& value : values.view().as<float>()) {
    value = std::clamp(std::round(value * 8) / 8, -1.0F, 1.0F);
  }
  return values;
}

// Operands in f32, weights in rows of inputs, and results, which are NaN before a kernel runs.
struct DenseRun {
  explicit DenseRun(const TileDenseProblem& p)
      : problem(p),
        x(eighths(p.rows * p.ins, 1)),
        dy(eighths(p.rows * p.outs, 2)),
        w(eighths(p.ins * p.outs, 3)),
        bias(eighths(p.outs, 4)),
        y({.shape = {p.rows * p.outs}, .type = DataType::bf16}),
        dx({.shape = {p.rows * p.ins}, .type = DataType::bf16}),
        dw(constant({p.ins * p.outs}, std::nanf(""))),
        dbias(constant({p.outs}, std::nanf(""))) {
    for (const HostTensor* const result : {&y, &dx}) {
      std::ranges::fill(result->view().as<BFloat16>(), to_bf16(std::nanf("")));
    }
  }

  void run(int threads) {
    const Threads team(threads);
    const HostTensor x_words = bf16_words(x), dy_words = bf16_words(dy);
    const HostTensor slabs = in_slabs();
    run_one(TileDenseForward(problem), {x_words.view(), slabs.view(), bias.view()}, {y.view()});
    run_one(TileDenseBackwardData(problem), {dy_words.view(), slabs.view()}, {dx.view()});
    run_one(TileDenseBackwardWeights(problem, layers::cpu::loops_for(layers::cpu::effective_isa())),
            {x_words.view(), dy_words.view()}, {dw.view(), dbias.view()});
    for (const HostTensor* const result : {&y, &dx, &dw, &dbias}) {
      EXPECT_TRUE(result->guard_is_intact());
    }
  }
  template <class Work>
  static void run_one(const Work& work, std::vector<TensorView> in, std::vector<TensorView> out) {
    const HostTensor workspace =
        constant({static_cast<std::int64_t>(work.workspace() / 4)}, std::nanf(""));
    work({.in = std::move(in),
          .out = std::move(out),
          .workspace = {workspace.view().data, work.workspace()}});
    EXPECT_TRUE(workspace.guard_is_intact());
  }

  // The place of a weight in memory.
  std::size_t place(std::int64_t in, std::int64_t out) const {
    return static_cast<std::size_t>((out / 64 * problem.ins + in) * 64 + out % 64);
  }
  HostTensor in_slabs() const {
    HostTensor slabs = constant({problem.ins * problem.outs}, 0);
    for (std::int64_t in = 0; in < problem.ins; ++in) {
      for (std::int64_t out = 0; out < problem.outs; ++out) {
        slabs.view().as<float>()[place(in, out)] = weight(in, out);
      }
    }
    return slabs;
  }

  static float at(const HostTensor& values, std::int64_t i) {
    return values.view().as<float>()[static_cast<std::size_t>(i)];
  }
  float weight(std::int64_t in, std::int64_t out) const { return at(w, in * problem.outs + out); }
  static float word(const HostTensor& words, std::int64_t i) {
    return to_float(words.view().as<BFloat16>()[static_cast<std::size_t>(i)]);
  }

  float due_y(std::int64_t row, std::int64_t out) const {
    double sum = problem.bias ? static_cast<double>(at(bias, out)) : 0;
    for (std::int64_t in = 0; in < problem.ins; ++in) {
      sum +=
          static_cast<double>(at(x, row * problem.ins + in)) * static_cast<double>(weight(in, out));
    }
    return to_float(to_bf16(static_cast<float>(problem.relu && sum < 0 ? 0 : sum)));
  }
  float due_dx(std::int64_t row, std::int64_t in) const {
    double sum = 0;
    for (std::int64_t out = 0; out < problem.outs; ++out) {
      sum += static_cast<double>(at(dy, row * problem.outs + out)) *
             static_cast<double>(weight(in, out));
    }
    return to_float(to_bf16(static_cast<float>(sum)));
  }
  float due_dw(std::int64_t in, std::int64_t out) const {
    double sum = 0;
    for (std::int64_t row = 0; row < problem.rows; ++row) {
      sum += static_cast<double>(at(x, row * problem.ins + in)) *
             static_cast<double>(at(dy, row * problem.outs + out));
    }
    return static_cast<float>(sum);
  }

  TileDenseProblem problem;
  HostTensor x, dy, w, bias, y, dx, dw, dbias;
};

class TileDense : public testing::TestWithParam<DenseCase> {
 protected:
  void SetUp() override {
    if (!layers::cpu::effective_isa().amx_bf16) {
      GTEST_SKIP() << "this processor lacks amx_bf16";
    }
  }
  // Calls visit(row, column) for all places of a matrix, or for some thousand of a large one.
  template <class Visit>
  static void each(std::int64_t rows, std::int64_t columns, const Visit& visit) {
    const std::int64_t step = rows * columns / 4096 + 1;
    for (std::int64_t i = 0; i < rows * columns; i += step) {
      visit(i / columns, i % columns);
    }
  }
};

TEST_P(TileDense, HasTheProductsOfItsDirections) {
  const TileDenseProblem& problem = GetParam().problem;
  ASSERT_TRUE(problem.is_supported());
  DenseRun run(problem);
  run.run(2);
  each(problem.rows, problem.outs, [&](std::int64_t row, std::int64_t out) {
    ASSERT_EQ(DenseRun::word(run.y, row * problem.outs + out), run.due_y(row, out))
        << "y " << row << ", " << out;
  });
  each(problem.rows, problem.ins, [&](std::int64_t row, std::int64_t in) {
    ASSERT_EQ(DenseRun::word(run.dx, row * problem.ins + in), run.due_dx(row, in))
        << "dx " << row << ", " << in;
  });
  each(problem.ins, problem.outs, [&](std::int64_t in, std::int64_t out) {
    ASSERT_EQ(run.dw.view().as<float>()[run.place(in, out)], run.due_dw(in, out))
        << "dw " << in << ", " << out;
  });
}

TEST_P(TileDense, WritesEveryResult) {
  DenseRun run(GetParam().problem);
  run.run(3);
  for (const HostTensor* const words : {&run.y, &run.dx}) {
    EXPECT_TRUE(std::ranges::none_of(words->view().as<BFloat16>(),
                                     [](BFloat16 value) { return std::isnan(to_float(value)); }));
  }
  EXPECT_TRUE(std::ranges::none_of(run.dw.view().as<float>(),
                                   [](float value) { return std::isnan(value); }));
}

TEST_P(TileDense, SumsTheBiasOverTheRows) {
  const TileDenseProblem& problem = GetParam().problem;
  DenseRun run(problem);
  run.run(2);
  for (std::int64_t out = 0; out < problem.outs; ++out) {
    double sum = 0;
    for (std::int64_t row = 0; row < problem.rows; ++row) {
      sum += static_cast<double>(DenseRun::at(run.dy, row * problem.outs + out));
    }
    const float got = DenseRun::at(run.dbias, out);
    if (problem.bias) {
      EXPECT_EQ(got, static_cast<float>(sum)) << out;
    } else {
      EXPECT_TRUE(std::isnan(got)) << out;
    }
  }
}

TEST_P(TileDense, HasTheSameBitsWithAnyNumberOfThreads) {
  DenseRun one(GetParam().problem);
  one.run(1);
  for (const int threads : {2, 3, 16}) {
    DenseRun many(GetParam().problem);
    many.run(threads);
    EXPECT_FALSE(difference(one.y.view(), many.y.view(), 0)) << threads;
    EXPECT_FALSE(difference(one.dx.view(), many.dx.view(), 0)) << threads;
    EXPECT_FALSE(difference(one.dw.view(), many.dw.view(), 0)) << threads;
  }
}

TEST_P(TileDense, ShowsNumbersThatAreNotFinite) {
  const TileDenseProblem& problem = GetParam().problem;
  for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    DenseRun run(problem);
    run.x.view().as<float>()[0] = value;
    run.dy.view().as<float>()[0] = value;
    std::ranges::fill(run.w.view().as<float>(), 1.0F);
    run.run(2);
    EXPECT_FALSE(std::isfinite(DenseRun::word(run.y, 0)));
    EXPECT_FALSE(std::isfinite(DenseRun::word(run.dx, problem.ins - 1)));
    EXPECT_FALSE(std::isfinite(run.dw.view().as<float>()[0]));
    if (problem.rows > 1) {
      EXPECT_TRUE(std::isfinite(DenseRun::word(run.y, problem.outs)));
      EXPECT_TRUE(std::isfinite(DenseRun::word(run.dx, problem.ins)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TileDense, testing::ValuesIn(dense_tile_cases()),
                         [](const auto& info) { return info.param.name; });

// The rules take it for large weights and up to 64 rows of bf16.
TEST(TileDenseRows, AreForLargeWeightsAndFewRows) {
  if (!layers::cpu::effective_isa().amx_bf16) {
    GTEST_SKIP() << "this processor lacks amx_bf16";
  }
  KernelTable table, frozen;
  layers::cpu::add_dense_rows(table);
  layers::cpu::add_dense_rows(frozen, {.weights_change = false});
  const auto provider = [&](std::int64_t rows, std::int64_t ins, std::int64_t outs, DataType type) {
    const TensorDesc x{.shape = {rows, ins}, .type = type}, y{.shape = {rows, outs}, .type = type};
    const TensorDesc w{.shape = {ins, outs}};
    std::vector<Provider> by;
    for (const auto& spec :
         {table.describe(layers::Dense({.bias = false}), {.in = {x, w}, .out = {y}}),
          table.describe(layers::DenseBackwardData(), {.in = {y, w}, .out = {x}}),
          table.describe(layers::DenseBackwardWeights({.bias = false}),
                         {.in = {x, y}, .out = {w}})}) {
      by.push_back(spec.value().by);
    }
    return by;
  };
  const std::vector own(3, Provider::own), onednn(3, Provider::onednn);
  EXPECT_EQ(provider(8, 1024, 1024, DataType::bf16), own);
  EXPECT_EQ(provider(64, 9216, 4096, DataType::bf16), own);
  EXPECT_EQ(provider(65, 9216, 4096, DataType::bf16), onednn);
  EXPECT_EQ(provider(8, 1024, 1001, DataType::bf16), onednn);
  EXPECT_EQ(provider(8, 512, 512, DataType::bf16), onednn);
  EXPECT_EQ(provider(8, 1024, 1024, DataType::f32), onednn);
  const TensorDesc x{.shape = {8, 1024}, .type = DataType::bf16};
  const auto spec = frozen.describe(layers::Dense({.bias = false}),
                                    {.in = {x, {.shape = {1024, 1024}}}, .out = {x}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->by, Provider::onednn) << "weights in bf16, which are converted once";
}

}  // namespace
}  // namespace cnn::tests
