#include "data/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::HasSubstr;

TEST(GzipReader, GivesTheBytesInPieces) {
  const std::string packed = gzip("hello world");
  GzipReader reader(std::as_bytes(std::span(packed)));
  EXPECT_EQ(reader.read(5).size(), 5U);
  const auto rest = reader.read(6);
  EXPECT_EQ(static_cast<char>(rest[1]), 'w');
  EXPECT_NO_THROW(reader.expect_end());
  EXPECT_TRUE(reader.read(0).empty());
}

TEST(GzipReader, ReadsMoreThanOnePieceOfMemory) {
  const std::string packed = gzip(std::string(5'000'000, 'a') + "z");
  GzipReader reader(std::as_bytes(std::span(packed)));
  const auto bytes = reader.read(5'000'001);
  EXPECT_EQ(static_cast<char>(bytes.front()), 'a');
  EXPECT_EQ(static_cast<char>(bytes.back()), 'z');
  EXPECT_NO_THROW(reader.expect_end());
}

TEST(GzipReader, ThrowsWhenLessOrMoreIsThere) {
  const std::string packed = gzip("hello");
  GzipReader reader(std::as_bytes(std::span(packed)));
  EXPECT_EQ(reader.read(2).size(), 2U);
  EXPECT_THAT(error_of([&] { reader.expect_end(); }), HasSubstr("more than"));
  GzipReader other(std::as_bytes(std::span(packed)));
  EXPECT_THAT(error_of([&] { other.read(6); }), HasSubstr("less than"));
}

}  // namespace
}  // namespace cnn::data
