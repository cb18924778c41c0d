#include "data/safetensors.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string reading_error(const std::string& file) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.safetensors", file);
  return error_of([&] { SafetensorsFile{path}; });
}

std::string reading_error(const std::string& header, std::size_t bytes) {
  return reading_error(safetensors(header, std::string(bytes, 'x')));
}

// Reads a file with one tensor `a`; `description` is its JSON without the braces.
std::string error_for_tensor(const std::string& description, std::size_t bytes = 8) {
  return reading_error("{\"a\":{" + description + "}}", bytes);
}

TEST(Safetensors, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const std::array<float, 3> weights{1.5F, -2.0F, std::numeric_limits<float>::quiet_NaN()};
  const std::int64_t step = 110;
  const std::vector<StoredTensor> tensors{{"global_step", StoredType::i64, {}},
                                          {"v/w", StoredType::f32, {3, 1}},
                                          {"empty", StoredType::f32, {0, 4}}};
  write_safetensors(path, tensors, [&](std::size_t index) {
    return index == 0   ? std::as_bytes(std::span(&step, 1))
           : index == 1 ? std::as_bytes(std::span(weights))
                        : std::span<const std::byte>();
  });
  const SafetensorsFile file(path);
  ASSERT_EQ(file.entries().size(), 3U);
  const auto* entry = file.find("v/w");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->tensor.shape, (Shape{3, 1}));
  EXPECT_EQ(entry->offset % 4, 0U);
  std::array<float, 3> read{};
  file.read_f32(*entry, read);
  EXPECT_EQ(read[1], -2.0F);
  EXPECT_TRUE(std::isnan(read[2]));
  std::array<float, 1> as_float{};
  file.read_f32(*file.find("global_step"), as_float);
  EXPECT_EQ(as_float[0], 110.0F);
  EXPECT_EQ(file.find("empty")->bytes, 0U);
  EXPECT_EQ(file.find("v"), nullptr);
}

// Other programs read the format, so this test fixes the exact bytes.
TEST(Safetensors, WritesTheDocumentedForm) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const std::vector<StoredTensor> tensors{{"w", StoredType::u8, {2}}};
  write_safetensors(path, tensors, [](std::size_t) { return std::as_bytes(std::span("hi", 2)); });
  EXPECT_EQ(read_file(path),
            safetensors(R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}   )", "hi"));
}

TEST(Safetensors, ConvertsEveryTypeToF32) {
  const std::string header = R"({"__metadata__":{"format":"pt"},
    "f16":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},
    "bf16":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]},
    "f64":{"dtype":"F64","shape":[1],"data_offsets":[10,18]},
    "i8":{"dtype":"I8","shape":[1],"data_offsets":[18,19]},
    "u8":{"dtype":"U8","shape":[1],"data_offsets":[19,20]},
    "i32":{"dtype":"I32","shape":[1],"data_offsets":[20,24]},
    "i64":{"dtype":"I64","shape":[1],"data_offsets":[24,32]}})";
  const std::string bytes =
      little_endian(0x3E00, 2) + little_endian(0xC000, 2) + little_endian(0x8001, 2) +
      little_endian(0x7C00, 2) + little_endian(0x3FC0, 2) + little_endian(0xC004000000000000, 8) +
      "\xff" + "\xff" + little_endian(0xFFFFFFFD, 4) + little_endian(1'000'000, 8);
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write("a", safetensors(header, bytes)));
  const auto values = [&](const char* name) {
    const auto* entry = file.find(name);
    std::vector<float> read(static_cast<std::size_t>(entry->tensor.shape.elements()));
    file.read_f32(*entry, read);
    return read;
  };
  EXPECT_THAT(values("f16"), ElementsAre(1.5F, -2.0F, -0x1p-24F, INFINITY));
  EXPECT_THAT(values("bf16"), ElementsAre(1.5F));
  EXPECT_THAT(values("f64"), ElementsAre(-2.5F));
  EXPECT_THAT(values("i8"), ElementsAre(-1.0F));
  EXPECT_THAT(values("u8"), ElementsAre(255.0F));
  EXPECT_THAT(values("i32"), ElementsAre(-3.0F));
  EXPECT_THAT(values("i64"), ElementsAre(1e6F));
}

TEST(Safetensors, ConvertsATensorLargerThanOnePiece) {
  constexpr std::size_t count = 150'000;
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += little_endian(i, 4);
  }
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write(
      "a",
      safetensors(R"({"a":{"dtype":"I32","shape":[150000],"data_offsets":[0,600000]}})", bytes)));
  std::vector<float> values(count);
  file.read_f32(*file.find("a"), values);
  EXPECT_EQ(values[65535], 65535.0F);
  EXPECT_EQ(values[65536], 65536.0F);
  EXPECT_EQ(values[count - 1], 149999.0F);
}

TEST(Safetensors, ReadsPartsButNotBeyondATensor) {
  const TemporaryFolder folder;
  const auto path = write_tensors(folder, 2);
  const SafetensorsFile file(path);
  std::array<float, 2> part{};
  file.read(*file.find("images"), std::uint64_t{4} * 10, std::as_writable_bytes(std::span(part)));
  EXPECT_THAT(part, ElementsAre(10.0F, 11.0F));
  EXPECT_THAT(error_of([&] {
                file.read(*file.find("images"), std::uint64_t{4} * 11,
                          std::as_writable_bytes(std::span(part)));
              }),
              HasSubstr("beyond the tensor images"));
}

TEST(Safetensors, RejectsAHeaderThatLiesAboutItsLength) {
  EXPECT_THAT(reading_error(""), HasSubstr("shorter than 8 bytes"));
  EXPECT_THAT(reading_error("1234567"), HasSubstr("shorter than 8 bytes"));
  EXPECT_THAT(reading_error(little_endian(3, 8) + "{}"), HasSubstr("longer than the file"));
  EXPECT_THAT(reading_error(little_endian(~0ULL, 8) + "{}"), HasSubstr("longer than the file"));
  EXPECT_THAT(reading_error(std::string((16U << 20) + 1, ' '), 0), HasSubstr("16 MiB"));
}

TEST(Safetensors, RejectsAHeaderThatIsNoSuchJson) {
  EXPECT_THAT(reading_error("", 0), HasSubstr("not JSON at line 1"));
  EXPECT_THAT(reading_error("{", 0), HasSubstr("not JSON at line 1"));
  EXPECT_THAT(reading_error("[]", 0), HasSubstr("no JSON object"));
  EXPECT_THAT(reading_error("{} x", 0), HasSubstr("not JSON at line 1"));
  EXPECT_THAT(reading_error(std::string(100'000, '['), 0), HasSubstr("nested more deeply"));
  EXPECT_THAT(reading_error(R"({"a":{"b":{"c":{"d":{"e":{}}}}}})", 0), HasSubstr("too deeply"));
  EXPECT_THAT(reading_error(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                            "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                            1),
              HasSubstr("two tensors called a"));
  EXPECT_THAT(reading_error(R"({"a":{"dtype":"U8","shape":[1],"shape":[1]}})", 0),
              HasSubstr("its header is not readable: the key \"a.shape\" is there twice"));
}

TEST(Safetensors, RejectsDescriptionsThatMakeNoSense) {
  EXPECT_THAT(reading_error(R"({"a":1})", 0), AllOf(HasSubstr("tensor a"), HasSubstr("no object")));
  EXPECT_THAT(error_for_tensor(R"("shape":[2],"data_offsets":[0,8])"), HasSubstr("no dtype"));
  EXPECT_THAT(error_for_tensor(R"("dtype":"F8","shape":[2],"data_offsets":[0,8])"),
              HasSubstr("element type F8"));
  EXPECT_THAT(error_for_tensor(R"("dtype":7,"shape":[2],"data_offsets":[0,8])"),
              HasSubstr("dtype is no text"));
  EXPECT_THAT(error_for_tensor(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"),
              HasSubstr("shape is no list"));
  EXPECT_THAT(error_for_tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"),
              HasSubstr("dimensions must be numbers from 0"));
  EXPECT_THAT(error_for_tensor(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"),
              HasSubstr("dimensions must be numbers from 0"));
  EXPECT_THAT(error_for_tensor(R"("dtype":"F32","shape":[1,1,1,1,1,2],"data_offsets":[0,8])"),
              HasSubstr("more than five dimensions"));
  EXPECT_THAT(error_for_tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0])"),
              HasSubstr("not two numbers"));
  EXPECT_THAT(error_for_tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"),
              HasSubstr("backwards"));
}

TEST(Safetensors, RejectsSizesThatDoNotAgree) {
  EXPECT_THAT(error_for_tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"),
              HasSubstr("need 12 bytes, but it has 8"));
  EXPECT_THAT(
      error_for_tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
      HasSubstr("too many elements"));
  EXPECT_THAT(
      error_for_tensor(R"("dtype":"F32","shape":[0,9223372036854775807,8],"data_offsets":[0,8])"),
      HasSubstr("need 0 bytes"));
  EXPECT_THAT(error_for_tensor(R"("dtype":"F32","shape":[18446744073709551615],)"
                               R"("data_offsets":[0,8])"),
              HasSubstr("too large"));
}

TEST(Safetensors, RejectsBytesOfNoTensorOrOfTwo) {
  const auto two = [](const std::string& first, const std::string& second, std::size_t bytes) {
    return reading_error(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
                             R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                         bytes);
  };
  EXPECT_EQ(two("[0,4]", "[4,8]", 8), "");
  EXPECT_EQ(two("[4,8]", "[0,4]", 8), "");
  EXPECT_THAT(two("[0,4]", "[3,7]", 7), HasSubstr("b overlaps another"));
  EXPECT_THAT(two("[0,4]", "[0,4]", 4), HasSubstr("overlaps another"));
  EXPECT_THAT(two("[0,4]", "[5,9]", 9), HasSubstr("bytes of no tensor before b"));
  EXPECT_THAT(two("[0,4]", "[4,8]", 9), HasSubstr("bytes of no tensor at its end"));
  EXPECT_THAT(two("[0,4]", "[4,8]", 7), HasSubstr("beyond the end of the file"));
}

TEST(Safetensors, RefusesToWriteNonsense) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const auto write = [&](const std::vector<StoredTensor>& tensors) {
    return error_of([&] {
      write_safetensors(path, tensors,
                        [](std::size_t) { return std::as_bytes(std::span("hi", 2)); });
    });
  };
  EXPECT_THAT(write({{"w", StoredType::u8, {3}}}), HasSubstr("given 2 bytes, not 3"));
  EXPECT_THAT(write({{"w", StoredType::u8, {2}}, {"w", StoredType::u8, {2}}}),
              HasSubstr("two tensors w"));
  EXPECT_THAT(write({{"", StoredType::u8, {2}}}), HasSubstr("cannot be called ''"));
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace cnn::data
