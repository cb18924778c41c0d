#include "bench/session/variable_snapshot.h"

#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

VariableSnapshot two_variables(const tests::TemporaryFolder& folder, std::int64_t step) {
  return {.options = {.train_dir = folder.path(), .global_step = step},
          .tensors = {{"v/a", {2}}, {"v/b", {1, 3}}},
          .values = {{1, 2}, {3, 4, 5}}};
}

TEST(VariableSnapshot, CountsTheBytesOfItsValues) {
  const tests::TemporaryFolder folder;
  EXPECT_EQ(two_variables(folder, 0).bytes(), 5 * sizeof(float));
  EXPECT_EQ(VariableSnapshot().bytes(), 0U);
}

TEST(VariableSnapshot, IsSavedAsACheckpointOfItsStep) {
  const tests::TemporaryFolder folder;
  const VariableSnapshot snapshot = two_variables(folder, 7);
  const std::string path = snapshot.save();
  EXPECT_EQ(path, folder / "model.ckpt-7.safetensors");
  std::vector<std::vector<float>> read(2);
  data::load(path, snapshot.tensors, [&](std::size_t index, std::span<const float> values) {
    read[index].assign(values.begin(), values.end());
  });
  EXPECT_EQ(read, snapshot.values);
}

TEST(VariableSnapshot, SaysWhereItCouldNotBeSaved) {
  const tests::TemporaryFolder folder;
  folder.write("file", "");
  VariableSnapshot snapshot = two_variables(folder, 7);
  snapshot.options.train_dir = folder.path() / "file";
  EXPECT_NE(tests::error_of([&] { snapshot.save(); }).find("cannot save a checkpoint"),
            std::string::npos);
}

}  // namespace
}  // namespace cnn::bench
