// libFuzzer target that reads its input as a TFRecord file, as the tf.train.Example of one record
// and as an image file. scripts/fuzz.sh builds and runs it.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/images/crop.h"
#include "data/images/decoder.h"
#include "data/images/random_stream.h"
#include "data/records/image_example.h"
#include "data/records/record.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace cnn::data;

void decode(std::span<const std::byte> image, std::span<const Box> boxes) {
  static ImageDecoder decoder;  // kept from image to image, as in the program
  static Pixels pixels;
  const ImageSize size = decoder.open(image);
  RandomStream random(1, static_cast<std::int64_t>(image.size()));
  decoder.decode(sample_crop(size, boxes, random), pixels);
}

void read_example(std::span<const std::byte> record) {
  const ImageExample example = parse_image_example(record);
  decode(example.encoded, example.boxes);
}

void read_file(std::span<const std::uint8_t> bytes) {
  static const cnn::fuzz::MemoryFile memory;
  memory.fill(bytes);
  const InputFile file(memory.path());
  std::vector<std::byte> buffer;
  std::uint64_t offset = 0;
  for (const std::uint32_t length : scan_records(file).bytes) {
    read_example(read_record(file, offset, length, buffer));
    offset += length + record_frame_bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  cnn::fuzz::survive([&] { decode(bytes, {}); });
  cnn::fuzz::survive([&] { read_example(bytes); });
  cnn::fuzz::survive([&] { read_file({data, size}); });
  return 0;
}
