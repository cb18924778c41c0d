#include "bench/session/tensor_hashes.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cpu/device.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn::bench {
namespace {

// Returns a graph of y = 2 x + 1, w -= y / 4 and z = y + 1.
std::shared_ptr<const Graph> hashed_graph() {
  auto graph = std::make_shared<Graph>();
  const Value w = graph->parameter("w", tests::floats(5), {});
  const Value y = emit(tests::Scale(2), {graph->input("x", tests::floats(5))});
  graph->output("sum", emit(tests::Descend(), {w, y}));
  graph->output("z", emit(tests::Scale(1), {y}));
  return graph;
}

class HashedStep {
 public:
  explicit HashedStep(bool own_memory = false)
      : step_(make_plan(hashed_graph(), tests::test_kernels()), tests::test_kernels()) {
    backend_.device = std::make_unique<CpuDevice>();
    if (own_memory) {
      backend_.memory.host = 0;
    }
    hashes_ = std::make_unique<TensorHashes>(step_.executor().plan(), backend_);
    step_.executor().observe(*hashes_);
  }

  const TensorHashes& run(bool wanted = true) {
    hashes_->begin(wanted);
    step_.run();
    return *hashes_;
  }
  void set_input(float value) { step_.inputs()[0].as<float>()[4] = value; }
  // Returns the hash of a tensor in the latest step.
  std::uint64_t of(const std::string& name) const {
    const std::size_t tensor = hashes_->tensors().find(name);
    for (const TensorHash& hash : hashes_->hashes()) {
      if (hash.tensor == tensor) {
        return hash.hash;
      }
    }
    return 0;
  }

 private:
  tests::TestStep step_;
  Backend backend_;
  std::unique_ptr<TensorHashes> hashes_;
};

TEST(TensorHashes, AreOfAllThatTheStepWritesInItsOrder) {
  HashedStep step;
  const std::vector<TensorHash> hashes = step.run().hashes();
  ASSERT_EQ(hashes.size(), 4U);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    EXPECT_EQ(hashes[i].tensor, i);
  }
}

TEST(TensorHashes, DifferInTensorsThatDependOnAChangedValue) {
  HashedStep step, other;
  other.set_input(77);
  const std::uint64_t combined = step.run().combined();
  EXPECT_NE(other.run().combined(), combined);
  EXPECT_NE(other.of("scale#0"), step.of("scale#0"));
  EXPECT_NE(other.of("w"), step.of("w"));
  EXPECT_EQ(other.of("descend#1"), step.of("descend#1")) << "the output is the old w";
}

// The variable changes in each step, while y depends on the input only.
TEST(TensorHashes, AreTakenRightAfterAVariableChanged) {
  HashedStep step;
  step.run();
  const std::uint64_t w = step.of("w"), y = step.of("scale#0");
  step.run();
  EXPECT_NE(step.of("w"), w);
  EXPECT_EQ(step.of("scale#0"), y);
}

TEST(TensorHashes, AreTheSameOnADeviceWithItsOwnMemory) {
  EXPECT_EQ(HashedStep(true).run().hashes(), HashedStep(false).run().hashes());
}

TEST(TensorHashes, AreNoneOfAStepThatWasNotWanted) {
  HashedStep step;
  step.run();
  EXPECT_TRUE(step.run(false).hashes().empty());
}

TEST(TensorHashes, HaveTheKeysOfTheirTensors) {
  HashedStep step;
  const TensorHashes& hashes = step.run();
  for (std::size_t t = 0; t < hashes.tensors().all().size(); ++t) {
    EXPECT_EQ(hashes.key_of(t), hashes.tensors().all()[t].key) << "no tensor is packed";
  }
}

}  // namespace
}  // namespace cnn::bench
