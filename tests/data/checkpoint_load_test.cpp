#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <map>

#include "data/checkpoint.h"
#include "runtime/error.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Writes a file as another program might: every tensor has two values, its index and the next
// integer.
fs::path write(const TemporaryFolder& folder, const std::vector<std::string>& names) {
  std::vector<StoredTensor> tensors;
  tensors.reserve(names.size());
  for (const std::string& name : names) {
    tensors.push_back({name, StoredType::f32, {2}});
  }
  std::vector<float> values;
  fs::path path = folder.path() / "model.ckpt-12.safetensors";
  write_safetensors(path, tensors, [&](std::size_t index) {
    values = {static_cast<float>(index), static_cast<float>(index) + 1};
    return std::as_bytes(std::span(values));
  });
  return path;
}

const std::vector<NamedTensor> momentum{{"v/a", {2}}, {"v/a/Momentum", {2}, false}};
const std::vector<NamedTensor> only_a{{"v/a", {2}}};

struct Result {
  Loaded loaded;
  std::map<std::size_t, std::vector<float>> values;
};

Result load_from(const std::vector<std::string>& names, const std::vector<NamedTensor>& wanted,
                 Purpose purpose = Purpose::training) {
  const TemporaryFolder folder;
  Result result;
  result.loaded = load(
      write(folder, names), wanted,
      [&](std::size_t index, std::span<const float> values) {
        EXPECT_TRUE(result.values.try_emplace(index, values.begin(), values.end()).second);
      },
      purpose);
  return result;
}

std::string error_for(const std::vector<std::string>& names,
                      const std::vector<NamedTensor>& wanted) {
  return error_of([&] { load_from(names, wanted); });
}

TEST(LoadCheckpoint, HandsOverVariablesAndSlots) {
  const Result result = load_from({"v/a/Momentum", "v/a"}, momentum);
  EXPECT_THAT(result.values.at(0), ElementsAre(1, 2));
  EXPECT_THAT(result.values.at(1), ElementsAre(0, 1));
  EXPECT_THAT(result.loaded.missing, IsEmpty());
  EXPECT_THAT(result.loaded.notices, IsEmpty());
}

TEST(LoadCheckpoint, SaysInOneLineWhichTensorsAreNotFinite) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "model.ckpt-12.safetensors";
  const std::vector<StoredTensor> tensors{
      {"v/a", StoredType::f32, {2}}, {"v/b", StoredType::f32, {2}}, {"v/c", StoredType::f32, {2}}};
  // Returns the notices for a file in which all tensors from `first` on contain an infinity.
  const auto notices = [&](std::size_t first) {
    std::vector<float> values;
    write_safetensors(path, tensors, [&](std::size_t index) {
      values = {index < first ? 0 : std::numeric_limits<float>::infinity(),
                std::numeric_limits<float>::max()};
      return std::as_bytes(std::span(values));
    });
    const std::vector<NamedTensor> wanted{{"v/a", {2}}, {"v/b", {2}}, {"v/c", {2}}};
    const auto ignore = [](std::size_t, std::span<const float>) {};
    return load(path, wanted, ignore, Purpose::evaluation).notices;
  };
  const std::string advice = ": use an earlier checkpoint, or train again at a lower rate";
  EXPECT_THAT(
      notices(1),
      ElementsAre(path.string() +
                  ": v/b and 1 more hold NaN or infinity (1 of 2 values of the first)" + advice));
  EXPECT_THAT(notices(2),
              ElementsAre(path.string() + ": v/c holds NaN or infinity (1 of 2 values)" + advice));
  EXPECT_THAT(notices(3), IsEmpty());
}

TEST(LoadCheckpoint, ReadsBothPrefixesForAnyMode) {
  EXPECT_THAT(load_from({"v0/a"}, {{"v/a", {2}}}).values.at(0), ElementsAre(0, 1));
  EXPECT_THAT(load_from({"v/a"}, {{"v0/a", {2}}}).values.at(0), ElementsAre(0, 1));
  EXPECT_THAT(load_from({"v0/a", "v0/a/Momentum"}, momentum).values.at(1), ElementsAre(1, 2));
  EXPECT_THAT(error_for({"v0/a", "v/a"}, momentum), HasSubstr("both as v/ and as v0/"));
}

TEST(LoadCheckpoint, LeavesMissingSlotsAtTheirInitialValues) {
  const Result result = load_from({"v/a"}, momentum);
  EXPECT_THAT(result.loaded.missing, ElementsAre(1));
  EXPECT_EQ(result.values.size(), 1U);
}

TEST(LoadCheckpoint, SaysInTrainingThatSlotsOfTheOptimizerAreMissing) {
  EXPECT_THAT(load_from({"v/a"}, momentum).loaded.notices,
              ElementsAre(HasSubstr("model.ckpt-12.safetensors holds no slots of the optimizer "
                                    "(Momentum): they start at their initial values")));
  EXPECT_THAT(load_from({"v/a"}, momentum, Purpose::evaluation).loaded.notices, IsEmpty());
  const std::vector<NamedTensor> adam{{"v/a", {2}},
                                      {"v/a/Adam", {2}, false},
                                      {"v/a/Adam_1", {2}, false},
                                      {"beta1_power", {2}, false},
                                      {"loss_scale", {2}, false}};
  EXPECT_THAT(load_from({"v/a", "v/a/Adam"}, adam).loaded.notices,
              ElementsAre(HasSubstr("lacks 2 of the 3 slots of the optimizer (Adam_1, "
                                    "beta1_power): they start at their initial values")));
  EXPECT_THAT(load_from({"v/a"}, {{"v/a", {2}}, {"loss_scale", {2}, false}}).loaded.notices,
              IsEmpty())
      << "the loss scale is no slot";
}

TEST(LoadCheckpoint, GivesOneNoticeAboutSlotsOfAnotherOptimizer) {
  const Result result = load_from({"v/a", "v/b", "v/a/Adam", "v/b/Adam", "v/a/Adam_1", "v/b/Adam_1",
                                   "beta1_power", "beta2_power"},
                                  {{"v/a", {2}}, {"v/b", {2}}, {"v/a/Momentum", {2}, false}});
  EXPECT_THAT(result.loaded.notices,
              ElementsAre(AllOf(HasSubstr("model.ckpt-12"),
                                HasSubstr("(Adam, Adam_1, beta1_power, beta2_power)")),
                          HasSubstr("holds no slots of the optimizer (Momentum)")));
  EXPECT_THAT(result.loaded.missing, ElementsAre(2));
}

TEST(LoadCheckpoint, IgnoresSlotsSilentlyForEvaluation) {
  const Result result =
      load_from({"v/a", "v/a/RMSProp", "v/a/RMSProp_1"}, only_a, Purpose::evaluation);
  EXPECT_THAT(result.loaded.notices, IsEmpty());
  EXPECT_EQ(load_from({"v/a", "v/a/RMSProp"}, only_a).loaded.notices.size(), 1U);
}

TEST(LoadCheckpoint, NamesTheVariableThatIsMissing) {
  EXPECT_THAT(error_for({"v/b"}, {{"v/a", {2}}, {"v/b", {2}}}),
              AllOf(HasSubstr("model.ckpt-12.safetensors"), HasSubstr("no variable v/a")));
}

TEST(LoadCheckpoint, NamesTheVariableOfAnotherShape) {
  EXPECT_THAT(error_for({"v/a"}, {{"v/a", {1, 2}}}),
              AllOf(HasSubstr("v/a"), HasSubstr("[2]"), HasSubstr("[1, 2]")));
  EXPECT_THAT(error_for({"v/a", "v/a/Momentum"}, {{"v/a", {2}}, {"v/a/Momentum", {3}, false}}),
              HasSubstr("v/a/Momentum"));
}

TEST(LoadCheckpoint, NamesTheVariableThatIsTooMuch) {
  EXPECT_THAT(error_for({"v/a", "v0/b"}, only_a), HasSubstr("no variable v0/b"));
  EXPECT_THAT(error_for({"v/a", "v/b/Momentum"}, only_a), HasSubstr("v/b/Momentum"));
  EXPECT_THAT(error_for({"v/a", "v/a/Adagrad"}, only_a), HasSubstr("v/a/Adagrad"));
  EXPECT_THAT(error_for({"v/a", "v/a/Momentum/Momentum"}, momentum),
              HasSubstr("v/a/Momentum/Momentum"));
  EXPECT_THAT(error_for({"v/a", "Momentum"}, only_a), HasSubstr("Momentum"));
}

TEST(LoadCheckpoint, HandsOverNothingUnlessAllFits) {
  const TemporaryFolder folder;
  const fs::path path = write(folder, {"v/a", "v/b"});
  EXPECT_FALSE(error_of([&] {
                 load(path, std::vector<NamedTensor>{{"v/a", {2}}, {"v/b", {3}}},
                      [](std::size_t, std::span<const float>) { FAIL(); });
               }).empty());
}

TEST(LoadCheckpoint, TakesTheLossScaleOrLeavesIt) {
  EXPECT_THAT(load_from({"v/a", "loss_scale", "loss_scale_normal_steps"}, only_a).loaded.notices,
              IsEmpty());
  const Result result =
      load_from({"v/a", "loss_scale"}, {{"v/a", {2}}, {"loss_scale", {2}, false}});
  EXPECT_THAT(result.values.at(1), ElementsAre(1, 2));
}

// Loads a checkpoint without variables whose global_step has this type and these bytes.
std::int64_t step_from(const std::string& type, const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string header = R"({"global_step":{"dtype":")" + type +
                             R"(","shape":[],"data_offsets":[0,)" + std::to_string(bytes.size()) +
                             "]}}";
  const fs::path path = folder.write("model.ckpt-7.safetensors", safetensors(header, bytes));
  return load(path, {}, [](std::size_t, std::span<const float>) {}).global_step;
}

TEST(LoadCheckpoint, TakesTheGlobalStepOfAnyType) {
  EXPECT_EQ(step_from("I64", little_endian(1LL << 40, 8)), 1LL << 40);
  EXPECT_EQ(step_from("I32", little_endian(110, 4)), 110);
  EXPECT_EQ(step_from("F32", little_endian(0x42DC0000, 4)), 110);
  EXPECT_THAT(error_of([] { step_from("I64", std::string(8, '\xff')); }), HasSubstr("negative"));
  EXPECT_THAT(error_of([] { step_from("F32", little_endian(0x7FC00000, 4)); }),
              HasSubstr("no step"));  // the bytes of NaN
  EXPECT_THAT(error_of([] { step_from("F32", little_endian(0x3F000000, 4)); }),
              HasSubstr("no step"));  // the bytes of 0.5
}

TEST(LoadCheckpoint, TakesTheStepFromTheNameOtherwise) {
  EXPECT_EQ(load_from({"v/a"}, only_a).loaded.global_step, 12);
}

TEST(LoadCheckpoint, RejectsADamagedFileByItsName) {
  const TemporaryFolder folder;
  for (const std::string& text : {std::string(), std::string("{}"), std::string(100, '\xff')}) {
    const fs::path path = folder.write("model.ckpt-1.safetensors", text);
    EXPECT_THAT(error_of([&] { load(path, only_a, [](std::size_t, std::span<const float>) {}); }),
                HasSubstr(path.string()));
  }
}

TEST(LoadCheckpoint, NamesAnOlderOneThatIsWholeWhereTheNewestIsCutOff) {
  const TemporaryFolder folder;
  const fs::path newest = write(folder, {"v/a"});
  fs::copy_file(newest, folder.path() / "model.ckpt-3.safetensors");
  // The message must not suggest a newer file.
  fs::copy_file(newest, folder.path() / "model.ckpt-20.safetensors");
  folder.write("model.ckpt-7.safetensors", "cut");
  fs::resize_file(newest, fs::file_size(newest) - 1);
  EXPECT_THAT(error_of([&] { load(newest, only_a, [](std::size_t, std::span<const float>) {}); }),
              AllOf(HasSubstr("model.ckpt-12.safetensors is not a valid"),
                    HasSubstr("model.ckpt-3.safetensors beside it is whole")));
}

}  // namespace
}  // namespace cnn::data
