#include "runtime/kernel.h"

#include <gtest/gtest.h>
#include <string>

#include "runtime/cpu/reference_kernel.h"
#include "runtime/error.h"
#include "tests/support/test_ops.h"

namespace cnn {
namespace {

using tests::floats;
using tests::Relu;
using tests::Scale;

class NamedKernel final : public Kernel {
 public:
  explicit NamedKernel(std::string name) : name_(std::move(name)) {}
  void run(Stream& /*stream*/, const Operands& /*operands*/) override {}
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

const Signature small{.in = {floats(2)}, .out = {floats(2)}};
const Signature large{.in = {floats(200)}, .out = {floats(200)}};

// A sum over all ranks, which the reference loops of one rank cannot compute.
class SumOverRanks final : public Op {
 public:
  std::string_view name() const override { return "sum_over_ranks"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override { return {in[0]}; }
  void reference(std::span<const TensorView> /*in*/,
                 std::span<const TensorView> /*out*/) const override {
    throw Error("loops of one rank were asked for a sum over all");
  }
  bool is_local() const override { return false; }
};

std::optional<KernelSpec> anything(const Op& /*op*/, const Signature& s) {
  return KernelSpec{.workspace = 0, .in = s.in, .out = s.out};
}

// Returns a table with a kernel of Scale for at most 100 elements and, on request, a fallback for
// all other sizes.
KernelTable table_with(bool fallback) {
  KernelTable table;
  table.add<Scale>(
      [](const Scale& /*op*/, const Signature& s) -> std::optional<KernelSpec> {
        if (s.in[0].shape.elements() > 100) {
          return std::nullopt;
        }
        return KernelSpec{.workspace = 8, .in = s.in, .out = s.out};
      },
      [](const Scale& /*op*/, const Signature& /*s*/) {
        return std::make_unique<NamedKernel>("row");
      });
  if (fallback) {
    table.otherwise(anything, [](const Op& /*op*/, const Signature& /*s*/) {
      return std::make_unique<NamedKernel>("fallback");
    });
  }
  return table;
}

std::string made(const KernelTable& table, const Op& op, const Signature& signature) {
  return dynamic_cast<NamedKernel&>(*table.make(op, signature)).name();
}

TEST(KernelTable, TakesTheRowOfTheOpsType) {
  const KernelTable table = table_with(true);
  EXPECT_EQ(table.describe(Scale(2), small)->workspace, 8U);
  EXPECT_EQ(made(table, Scale(2), small), "row");
  EXPECT_EQ(made(table, Relu(), small), "fallback");
}

TEST(KernelTable, TakesTheFirstOfSeveralRowsThatDescribesSomething) {
  KernelTable table = table_with(false);
  table.add<Scale>(
      [](const Scale& /*op*/, const Signature& s) {
        return std::optional(KernelSpec{.workspace = 16, .in = s.in, .out = s.out});
      },
      [](const Scale& /*op*/, const Signature& /*s*/) {
        return std::make_unique<NamedKernel>("second row");
      });
  EXPECT_EQ(made(table, Scale(2), small), "row");
  EXPECT_EQ(made(table, Scale(2), large), "second row");
  EXPECT_EQ(table.describe(Scale(2), large)->workspace, 16U);
}

// Where another row comes first in the layouts that the first answer asks for, its workspace
// counts.
TEST(KernelTable, ResolvesTheKernelThatRunsInTheLayoutsOfTheFirstAnswer) {
  KernelTable table;
  const auto add_row = [&table](std::size_t workspace, bool converts, const char* name) {
    table.add<Scale>(
        [workspace, converts](const Scale& /*op*/,
                              const Signature& s) -> std::optional<KernelSpec> {
          if (!converts && s.in[0].layout != Layout::nhwc) {
            return std::nullopt;
          }
          TensorDesc desc = s.in[0];
          desc.layout = Layout::nhwc;
          return KernelSpec{.workspace = workspace, .in = {desc}, .out = {desc}};
        },
        [name](const Scale& /*op*/, const Signature& /*s*/) {
          return std::make_unique<NamedKernel>(name);
        });
  };
  add_row(64, false, "own");
  add_row(8, true, "library");
  TensorDesc image{.shape = {1, 2, 3, 3}};
  const std::optional<KernelSpec> spec = table.resolve(Scale(2), {{image}, {image}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(made(table, Scale(2), {spec->in, spec->out}), "own");
  EXPECT_EQ(spec->workspace, 64U);
  EXPECT_FALSE(table.resolve(Relu(), small));
}

TEST(KernelTable, FallsBackWhereTheRowCannotRunIt) {
  const KernelTable table = table_with(true);
  EXPECT_EQ(table.describe(Scale(2), large)->workspace, 0U);
  EXPECT_EQ(made(table, Scale(2), large), "fallback");
}

TEST(KernelTable, DescribesNothingWithoutRowAndFallback) {
  const KernelTable table = table_with(false);
  EXPECT_FALSE(table.describe(Relu(), small));
  EXPECT_FALSE(table.describe(Scale(2), large));
}

TEST(KernelTable, TellsWhoseKernelAnswers) {
  KernelTable table = table_with(false);
  table.add<Relu>(
      anything, [](const Relu&, const Signature&) { return std::make_unique<NamedKernel>("row"); },
      Provider::onednn);
  add_reference(table);
  EXPECT_EQ(table.describe(Scale(2), small)->by, Provider::own);
  EXPECT_EQ(table.describe(Relu(), small)->by, Provider::onednn);
  EXPECT_EQ(table.describe(Scale(2), large)->by, Provider::loops);
}

TEST(KernelTable, LeavesAnOpThatIsNotLocalToItsRowsAlone) {
  KernelTable table = table_with(true);
  EXPECT_FALSE(table.describe(SumOverRanks(), small));
  EXPECT_THROW(table.make(SumOverRanks(), small), Error);
  table.add<SumOverRanks>(anything, [](const SumOverRanks&, const Signature&) {
    return std::make_unique<NamedKernel>("row");
  });
  EXPECT_EQ(made(table, SumOverRanks(), small), "row");
}

TEST(KernelTable, NamesOpAndSignatureThatNoKernelRuns) {
  const KernelTable table = table_with(false);
  try {
    table.make(Scale(2), large);
    FAIL() << "a kernel was made";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "no kernel of this backend runs scale on (f32[200] nchw) -> (f32[200] nchw)");
  }
}

TEST(KernelTable, MakesNoKernelForASignatureThatItDidNotOffer) {
  KernelTable table;
  add_reference(table);
  const TensorDesc nhwc{.shape = {1, 2, 3, 4}, .layout = Layout::nhwc};
  EXPECT_EQ(table.describe(Relu(), {{nhwc}, {nhwc}})->in[0].layout, Layout::nchw);
  EXPECT_THROW(table.make(Relu(), {{nhwc}, {nhwc}}), Error);
}

}  // namespace
}  // namespace cnn
