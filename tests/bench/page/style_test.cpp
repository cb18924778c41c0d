#include "bench/page/style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>

namespace cnn::page {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Document, PutsTheBodyUnchangedIntoAWholePage) {
  const std::string page = document("a run", "<main>50 % of {} & more</main>\n");
  EXPECT_THAT(page, StartsWith("<!doctype html>\n<html lang=\"en\">"));
  EXPECT_THAT(page, HasSubstr("<title>a run</title>"));
  EXPECT_THAT(page, HasSubstr("<body>\n<main>50 % of {} & more</main>\n</body>\n</html>\n"));
}

TEST(Document, EscapesTheTitle) {
  const std::string page = document("a<b & </title><script>", "");
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, HasSubstr("a&lt;b &amp; "));
}

TEST(Document, LoadsNothingFromElsewhere) {
  const std::string page = document("t", "b");
  for (const char* const loading : {"http:", "https:", "@import", "url(", " src="}) {
    EXPECT_THAT(page, Not(HasSubstr(loading))) << loading;
  }
}

TEST(Document, DefinesEveryColourThatItUses) {
  const std::string page = document("t", "b");
  std::set<std::string> used;
  for (std::size_t at = page.find("var(--"); at != std::string::npos;
       at = page.find("var(--", at + 1)) {
    const std::size_t name = at + std::string("var(").size();
    used.insert(page.substr(name, page.find(')', at) - name));
  }
  EXPECT_GE(used.size(), 5U);
  const std::size_t dark = page.find("prefers-color-scheme: dark");
  ASSERT_NE(dark, std::string::npos);
  for (const std::string& name : used) {
    EXPECT_LT(page.find(name + ": #"), dark) << name << " in light";
    EXPECT_NE(page.find(name + ": #", dark), std::string::npos) << name << " in dark";
  }
}

}  // namespace
}  // namespace cnn::page
