#include "data/records/protobuf.h"

#include <array>
#include <bit>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::HasSubstr;
using WireType = ProtobufReader::WireType;

std::string wire_of(const ProtobufWriter& writer) {
  return {reinterpret_cast<const char*>(writer.message().data()), writer.message().size()};
}

ProtobufReader wire_reader(std::string_view wire) {
  return ProtobufReader(std::as_bytes(std::span(wire)));
}

std::string wire_error(std::string_view wire) {
  return error_of([&] {
    ProtobufReader reader = wire_reader(wire);
    while (reader.next()) {
    }
  });
}

// The expected bytes are the examples of the format's specification or follow from it.
TEST(ProtobufWriter, WritesTheWireFormat) {
  ProtobufWriter writer;
  writer.varint_field(1, 150);
  EXPECT_EQ(wire_of(writer), "\x08\x96\x01");
  ProtobufWriter text;
  text.bytes_field(2, "testing");
  EXPECT_EQ(wire_of(text), "\x12\x07testing");
  ProtobufWriter numbers;
  numbers.float_field(3, 1);
  numbers.double_field(4, -2);
  EXPECT_EQ(wire_of(numbers), std::string("\x1D\0\0\x80\x3F\x21\0\0\0\0\0\0\0\xC0", 14));
  ProtobufWriter packed;
  packed.packed_doubles_field(20, std::array{2.0});
  EXPECT_EQ(wire_of(packed), std::string("\xA2\x01\x08\0\0\0\0\0\0\0\x40", 11));
}

TEST(ProtobufWriter, WritesNegativeNumbersInTenBytes) {
  ProtobufWriter writer;
  writer.varint_field(1, -1);
  EXPECT_EQ(wire_of(writer), "\x08" + std::string(9, '\xFF') + "\x01");
}

TEST(ProtobufReader, ReadsBackTheEdgesOfVarints) {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{127}, std::int64_t{128}, std::int64_t{16383},
        std::int64_t{16384}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    ProtobufWriter writer;
    writer.varint_field(536870911, value);
    ProtobufReader reader(writer.message());
    const auto field = reader.next();
    ASSERT_TRUE(field.has_value());
    EXPECT_EQ(field->number, 536870911U);
    EXPECT_EQ(field->type, WireType::varint);
    EXPECT_EQ(static_cast<std::int64_t>(field->value), value);
    EXPECT_TRUE(reader.at_end());
    EXPECT_FALSE(reader.next().has_value());
  }
}

TEST(ProtobufReader, ReadsFieldsOfAllTypesInTheirOrder) {
  ProtobufWriter writer;
  writer.double_field(1, 0.5);
  writer.bytes_field(2, "");
  writer.float_field(3, -0.25F);
  writer.bytes_field(2, "again");
  ProtobufReader reader(writer.message());
  auto field = reader.next();
  EXPECT_EQ(field->type, WireType::fixed64);
  EXPECT_EQ(std::bit_cast<double>(field->value), 0.5);
  field = reader.next();
  EXPECT_EQ(field->type, WireType::bytes);
  EXPECT_TRUE(field->bytes.empty());
  field = reader.next();
  EXPECT_EQ(field->type, WireType::fixed32);
  EXPECT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(field->value)), -0.25F);
  field = reader.next();
  EXPECT_EQ(field->number, 2U);
  EXPECT_EQ(field->bytes.size(), 5U);
  EXPECT_EQ(field->bytes.data(), writer.message().data() + writer.message().size() - 5)
      << "the field is a view, not a copy";
  EXPECT_FALSE(reader.next().has_value());
}

TEST(ProtobufReader, RefusesAMessageThatEndsWithinAField) {
  for (const std::string wire :
       {"\x08", "\x08\x80", "\x80", "\x15\1\2\3", "\x11\1\2\3\4\5\6\7", "\x12", "\x12\x03yz",
        "\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"}) {
    EXPECT_THAT(wire_error(wire), HasSubstr("ends within a field")) << wire.size();
  }
}

TEST(ProtobufReader, RefusesWhatTheFormatDoesNotHave) {
  EXPECT_THAT(wire_error("\x08" + std::string(10, '\x80') + "\1"), HasSubstr("more than 64 bits"));
  EXPECT_THAT(wire_error(std::string("\0\1", 2)), HasSubstr("without a number"));
  // These are the wire types of groups and the undefined types 6 and 7.
  for (const char* wire : {"\x0B", "\x0C", "\x0E", "\x0F"}) {
    EXPECT_THAT(wire_error(wire), HasSubstr("unknown wire type"));
  }
}

}  // namespace
}  // namespace cnn::data
