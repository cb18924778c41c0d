#include "data/records/image_example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "data/records/protobuf.h"
#include "runtime/error.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::HasSubstr;

std::span<const std::byte> example_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

ImageFeatures features_of_a_photograph() {
  return {.encoded = example_bytes("JPEG bytes"),
          .label = 1000,
          .height = 3,
          .width = 4,
          .boxes = {{0.1F, 0.2F, 0.3F, 0.4F}, {0, 0, 1, 1}}};
}

TEST(ImageExample, ReadsBackWhatWasWritten) {
  const std::vector<std::byte> record = image_example_record(features_of_a_photograph());
  const ImageExample example = parse_image_example(record);
  EXPECT_EQ(
      std::string(reinterpret_cast<const char*>(example.encoded.data()), example.encoded.size()),
      "JPEG bytes");
  EXPECT_EQ(example.label, 1000);
  EXPECT_EQ(example.boxes, features_of_a_photograph().boxes);
}

TEST(ImageExample, NeedsAnImageAndALabel) {
  EXPECT_THAT(error_of([] { parse_image_example({}); }), HasSubstr("image/encoded"));
  // The bytes encode Example{features{feature{key: "image/encoded" value{bytes_list{value:
  // "x"}}}}}.
  const std::string_view no_label("\x0a\x18\x0a\x16\x0a\x0dimage/encoded\x12\x05\x0a\x03\x0a\x01x");
  EXPECT_THAT(error_of([&] { parse_image_example(example_bytes(no_label)); }),
              HasSubstr("image/class/label"));
}

TEST(ImageExample, ReadsUnpackedListsToo) {
  ProtobufWriter list, feature, entry, features, example, image_list, image_feature, image_entry;
  list.varint(1U << 3U);  // field `value` as a separate varint
  list.varint(7);
  feature.bytes_field(3, list.message());
  entry.bytes_field(1, "image/class/label");
  entry.bytes_field(2, feature.message());
  image_list.bytes_field(1, "x");
  image_feature.bytes_field(1, image_list.message());
  image_entry.bytes_field(1, "image/encoded");
  image_entry.bytes_field(2, image_feature.message());
  features.bytes_field(1, entry.message());
  features.bytes_field(1, image_entry.message());
  example.bytes_field(1, features.message());
  EXPECT_EQ(parse_image_example(example.message()).label, 7);
}

TEST(ImageExample, RefusesBoxesOfDifferentLengths) {
  std::vector<std::byte> record = image_example_record(features_of_a_photograph());
  const std::string name = "image/object/bbox/xmax";
  const auto at = std::ranges::search(record, example_bytes(name));
  *at.begin() = std::byte{'J'};
  EXPECT_THAT(error_of([&] { parse_image_example(record); }), HasSubstr("boxes"));
}

TEST(ImageExample, SurvivesAnyChangeOfItsBytes) {
  const std::vector<std::byte> good = image_example_record(features_of_a_photograph());
  std::mt19937 random(7);  // NOLINT: the same changes every time
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bad = good;
    for (std::size_t change = 0; change <= random() % 3; ++change) {
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    }
    bad.resize(random() % 4 == 0 ? random() % bad.size() : bad.size());
    try {
      const ImageExample example = parse_image_example(bad);
      EXPECT_LE(example.boxes.size(), bad.size());
      EXPECT_LE(example.encoded.size(), bad.size());
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace cnn::data
