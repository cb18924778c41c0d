#include "bench/flags/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/flags/flag_table.h"
#include "bench/flags/help_parts.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

// Returns whether the script contains this word in a list.
bool offers(const std::string& script, const std::string& word) {
  return script.find(" " + word + " ") != std::string::npos ||
         script.find("\"" + word + " ") != std::string::npos ||
         script.find(" " + word + "\"") != std::string::npos;
}

TEST(BashCompletion, OffersTheFlagsThatActByTheirNamesOfToday) {
  const std::string script = bash_completion();
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      const std::string name(flag.name);
      const bool is_offered = offers(script, "--" + name + "=") || offers(script, "--" + name) ||
                              offers(script, "--no" + name);
      EXPECT_EQ(is_offered, acts(flag) && flag.renamed_to.empty()) << name;
    }
  }
}

TEST(BashCompletion, OffersSwitchesTheWayThatChangesThem) {
  const std::string script = bash_completion();
  EXPECT_TRUE(offers(script, "--nodropout"));
  EXPECT_FALSE(offers(script, "--dropout"));
  EXPECT_TRUE(offers(script, "--eval"));
  EXPECT_FALSE(offers(script, "--noeval"));
  EXPECT_FALSE(offers(script, "--eval="));
}

TEST(BashCompletion, OffersTheValuesThatAreKnown) {
  const std::string script = bash_completion();
  EXPECT_THAT(script, HasSubstr("        --optimizer) values='momentum sgd rmsprop adam' ;;\n"));
  EXPECT_THAT(script, HasSubstr("resnet50_v1.5 ")) << "names of models are no fixed choice";
  EXPECT_THAT(script, HasSubstr("cifar10 mnist tensors"));
  EXPECT_THAT(script, Not(HasSubstr("values=''")));
}

TEST(BashCompletion, HasNoTraceOfTheTemplateThatItIsMadeOf) {
  const std::string script = bash_completion();
  EXPECT_THAT(script, Not(HasSubstr("{{")));
  EXPECT_THAT(script, Not(HasSubstr("{}")));
  EXPECT_THAT(script, testing::EndsWith("complete -o nospace -F _cnn_benchmarks cnn_benchmarks\n"));
}

}  // namespace
}  // namespace cnn::bench
