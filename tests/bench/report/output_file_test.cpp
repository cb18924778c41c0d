#include "bench/report/output_file.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

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
  EXPECT_EQ(read_file(path), "something older and longer") << "a check leaves the file unchanged";
  file.write("new");
  file.write("newest");
  EXPECT_EQ(read_file(path), "newest");
  EXPECT_THAT(folder.names(), ElementsAre("a.json")) << "no temporary file remains";
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0640});
}

TEST(OutputFile, WritesToTheTargetOfALink) {
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

TEST(OutputFile, WritesToADeviceAndKeepsIt) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/null", folder / "null");
  const OutputFile file("--result_json", folder / "null");
  EXPECT_FALSE(file.replaceable());
  file.write("lost");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "null"));
}

TEST(OutputFile, NamesFlagAndPathIfItCannotBeWritten) {
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

}  // namespace
}  // namespace cnn::bench
