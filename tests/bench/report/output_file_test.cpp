#include "bench/report/output_file.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/report/append_line.h"
#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using tests::read_file;
using tests::TemporaryFolder;

TEST(OutputFile, IsReplacedAsAWholeAndKeepsItsPermissions) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.json", "something older and longer");
  chmod(path.c_str(), 0640);
  const OutputFile file("--result_json", path);
  EXPECT_TRUE(file.replaceable());
  EXPECT_EQ(read_file(path), "something older and longer") << "a check harms nothing";
  file.write("new");
  file.write("newest");
  EXPECT_EQ(read_file(path), "newest");
  EXPECT_THAT(folder.names(), ElementsAre("a.json")) << "no temporary stays";
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0640});
}

TEST(OutputFile, ThatIsALinkIsWrittenWhereItLeads) {
  const TemporaryFolder folder;
  folder.write("there/a.json", "old");
  std::filesystem::create_symlink("there/a.json", folder / "link");
  std::filesystem::create_symlink("link", folder / "chain");
  std::filesystem::create_symlink("there/none_yet.json", folder / "dangling");
  OutputFile("--result_json", folder / "chain").write("new");
  OutputFile("--result_json", folder / "dangling").write("first");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "chain"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "dangling"));
  EXPECT_EQ(read_file(folder / "there/a.json"), "new");
  EXPECT_EQ(read_file(folder / "there/none_yet.json"), "first");
}

TEST(OutputFile, ThatIsADeviceIsWrittenAndStaysOne) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/null", folder / "null");
  const OutputFile file("--result_json", folder / "null");
  EXPECT_FALSE(file.replaceable());
  file.write("lost");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "null"));
}

TEST(OutputFile, ThatCannotBeWrittenIsAnErrorThatNamesFlagAndPath) {
  const TemporaryFolder folder;
  for (const std::string& path : {std::string("/nowhere/at/all.json"), folder / ""}) {
    try {
      const OutputFile file("--result_json", path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("--result_json=" + path), std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(OutputFile("--result_json", "/dev/full").write("x"), Error);
}

TEST(AppendedFile, KeepsWhatItHas) {
  const TemporaryFolder folder;
  append_to_file("--x", folder / "log", "a\n");
  append_to_file("--x", folder / "log", "");
  append_to_file("--x", folder / "log", "b\n");
  EXPECT_EQ(read_file(folder / "log"), "a\nb\n");
  EXPECT_THROW(append_to_file("--x", "/nowhere/at/all", ""), Error);
}

TEST(AppendLine, KeepsLinesOfManyProcessesWhole) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "history";
  constexpr int processes = 8, lines = 50;
  const std::string line = std::string(3000, 'x') + "\n";
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(fork());
    if (children.back() == 0) {
      for (int n = 0; n < lines; ++n) {
        append_line("--history", path, line);
      }
      _exit(0);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::string all;
  for (int i = 0; i < processes * lines; ++i) {
    all += line;
  }
  EXPECT_TRUE(tests::read_file(path) == all);
}

TEST(AppendLine, StartsANewLineBehindOneThatWasCutOff) {
  const tests::TemporaryFolder folder;
  folder.write("history", "{\"program\": ");
  append_line("--history", folder / "history", "{}\n");
  append_line("--history", folder / "history", "[]\n");
  EXPECT_EQ(tests::read_file(folder / "history"), "{\"program\": \n{}\n[]\n");
}

TEST(AppendLine, NamesFlagAndPathThatCannotBeWritten) {
  const tests::TemporaryFolder folder;
  try {
    append_line("--history", folder / "none/file", "{}\n");
    FAIL() << "it was written";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "--history=" + (folder / "none/file") +
                                             ": cannot write it: No such file or directory");
  }
}

}  // namespace
}  // namespace cnn::bench
