#include "bench/report/result_file.h"

#include <array>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/report/result_json.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

TEST(ResultFile, HoldsTheNewestResultAsAWhole) {
  const tests::TemporaryFolder folder;
  ResultFile file(folder / "result.json");
  const Json first{{"a", std::string(1000, 'x')}}, second{{"b", 2}};
  file.publish(first);
  EXPECT_EQ(tests::read_file(folder / "result.json"), result_text(first));
  file.publish(second);
  EXPECT_EQ(tests::read_file(folder / "result.json"), result_text(second));
}

TEST(ResultFile, SendsAPipeTheFirstResultAlone) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ResultFile file(path);
  const Json first{{"a", 1}};
  file.publish(first);
  file.publish({{"b", 2}});
  std::array<char, 200> read_bytes{};
  const ssize_t bytes = ::read(reader, read_bytes.data(), read_bytes.size());
  close(reader);
  EXPECT_EQ(std::string(read_bytes.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0),
            result_text(first));
}

TEST(ResultFile, IsRefusedBeforeARunWhereItCannotBeWritten) {
  EXPECT_EQ(tests::error_of([] { ResultFile file("/nowhere/at/all.json"); }),
            "--result_json=/nowhere/at/all.json: cannot write it: No such file or directory");
}

TEST(ResultFile, WritesNothingWithoutAPath) {
  ResultFile file(std::nullopt);
  EXPECT_EQ(tests::error_of([&] { file.publish({{"a", 1}}); }), "");
}

}  // namespace
}  // namespace cnn::bench
