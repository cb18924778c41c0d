#include "bench/report/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "data/catalog.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;

std::vector<std::string> without_program(std::vector<std::string> lines) {
  lines.erase(lines.begin(), lines.begin() + 2);  // the lines of version and commit
  return lines;
}

Backend with_two_libraries(const Config& /*config*/) {
  Backend backend;
  backend.libraries = {{"first", "1.2"}, {"second", "3"}};
  return backend;
}
Backend without_libraries(const Config& /*config*/) { return {}; }

TEST(VersionLinesOfBackends, NameTheLibrariesOfEachBackend) {
  const std::vector<BackendKind> kinds{{.device = "cpu", .make = without_libraries},
                                       {.device = "gpu", .make = with_two_libraries}};
  EXPECT_THAT(without_program(version_lines("p", kinds)),
              ElementsAre("cpu backend: no libraries", "gpu backend: first 1.2, second 3"));
}

TEST(VersionLinesOfBackends, SayWhyABackendIsMissingAndDoNotMakeIt) {
  const std::vector<BackendKind> kinds{
      {.device = "gpu", .missing = [] { return std::string("no driver"); }, .make = nullptr}};
  EXPECT_THAT(without_program(version_lines("p", kinds)), ElementsAre("gpu backend: no driver"));
}

TEST(VersionLinesOfBackends, SayThatABuildHasNoGpuBackend) {
  const std::vector<BackendKind> kinds{{.device = "cpu", .make = without_libraries}};
  EXPECT_THAT(without_program(version_lines("p", kinds)),
              ElementsAre("gpu backend: not in this build", "cpu backend: no libraries"));
}

TEST(ModelLines, ListTheNetworksOfOneDataSetWithTheirDefaults) {
  const std::vector<std::string> lines = model_lines(&data::find("cifar10"));
  ASSERT_GT(lines.size(), 2U);
  EXPECT_THAT(lines[0], MatchesRegex("--model +--data_name +image_size +batch_size +parameters"));
  EXPECT_THAT(std::vector(lines.begin() + 1, lines.end()), Each(HasSubstr(" cifar10 ")));
  EXPECT_THAT(lines, Contains(AllOf(StartsWith("resnet20 "), HasSubstr(" 32 "))));
}

// VGG-16 has 138357544 parameters in its paper. Here it has one more class, with 4096 weights and a
// bias.
TEST(ModelLines, CountTheParametersOfANetworkWithItsLastLayer) {
  EXPECT_THAT(model_lines(&data::find("imagenet")),
              Contains(MatchesRegex("vgg16 +imagenet +224 +64 +138361641")));
}

TEST(ModelLines, ListAllDataSetsUnlessOneIsNamed) {
  const std::size_t imagenet = model_lines(&data::find("imagenet")).size() - 1;
  const std::size_t cifar10 = model_lines(&data::find("cifar10")).size() - 1;
  EXPECT_THAT(model_lines(nullptr), SizeIs(Ge(1 + imagenet + cifar10)));
}

TEST(Listing, GivesTheVersionBeforeTheModelsAndNothingUnasked) {
  const std::vector<BackendKind> kinds{{.device = "cpu", .make = without_libraries}};
  Config config;
  EXPECT_THAT(listing("p", config, kinds), IsEmpty());
  config.help.list_models = true;
  config.data.set = &data::find("cifar10");
  EXPECT_EQ(listing("p", config, kinds), model_lines(config.data.set));
  config.help.version = true;
  const std::vector<std::string> both = listing("p", config, kinds);
  EXPECT_THAT(both[0], StartsWith("p "));
  EXPECT_EQ(both.size(), version_lines("p", kinds).size() + model_lines(config.data.set).size());
  EXPECT_EQ(both.back(), model_lines(config.data.set).back());
}

}  // namespace
}  // namespace cnn::bench
