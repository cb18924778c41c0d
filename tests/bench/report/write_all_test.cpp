#include "bench/report/write_all.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace cnn::bench {
namespace {

// The text is sixteen times as long as a pipe's buffer, so each write takes only a part of it.
TEST(WriteAll, WaitsForTheReaderOfANonBlockingPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK), 0);
  std::string text(std::size_t{1} << 20U, 'x');
  text.back() = '\n';
  std::string arrived;
  std::thread reader([&] {
    fcntl(ends[0], F_SETFL, 0);
    std::array<char, 4096> part{};
    for (ssize_t bytes = 1; bytes > 0;) {
      bytes = ::read(ends[0], part.data(), part.size());
      arrived.append(part.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    }
  });
  EXPECT_EQ(write_all(ends[1], text), 0);
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_TRUE(arrived == text);
}

TEST(WriteAll, ReturnsWhatStoppedIt) {
  const int full = open("/dev/full", O_WRONLY);
  EXPECT_EQ(write_all(full, "x"), ENOSPC);
  close(full);
  EXPECT_EQ(write_all(-1, "x"), EBADF);
}

TEST(WriteAll, HasNothingToDoForAnEmptyText) { EXPECT_EQ(write_all(-1, ""), 0); }

}  // namespace
}  // namespace cnn::bench
