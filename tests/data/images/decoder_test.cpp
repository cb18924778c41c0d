#include "data/images/decoder.h"

#include <cstdio>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>
#include <random>

#include "runtime/error.h"
#include "tests/data/files.h"
#include "tests/data/images/encode.h"
#include "tests/support/flat_jpeg.h"

namespace cnn::data {

std::uint8_t gradient(int row, int column, int channel) {
  return static_cast<std::uint8_t>((3 * row + 2 * column) / 2 % 200 + 20 * channel);
}

std::string jpeg_of(int height, int width, JpegKind kind, const Painting& painting) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  const int channels = kind == JpegKind::grey ? 1 : (kind == JpegKind::cmyk ? 4 : 3);
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : (channels == 4 ? JCS_CMYK : JCS_RGB);
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor =
      kind == JpegKind::subsampled ? 2 : 1;
  info.write_Adobe_marker = kind == JpegKind::cmyk ? TRUE : FALSE;
  if (kind == JpegKind::progressive) {
    jpeg_simple_progression(&info);
  }
  jpeg_start_compress(&info, TRUE);
  std::vector<JSAMPLE> row(static_cast<std::size_t>(width * channels));
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < width * channels; ++i) {
      const int channel = i % channels;
      row[static_cast<std::size_t>(i)] =
          channel == 3 ? std::uint8_t{255} : painting(y, i / channels, channel);
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<char*>(memory), size);
  std::free(memory);  // NOLINT: libjpeg allocated it by malloc
  jpeg_destroy_compress(&info);
  return file;
}

std::string png_of(int height, int width, const Painting& painting) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < height * width * 3; ++i) {
    pixels.push_back(painting(i / (3 * width), i / 3 % width, i % 3));
  }
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string file(size, '\0');
  png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr);
  return file;
}

namespace {

using testing::HasSubstr;

std::span<const std::byte> image_bytes(const std::string& file) {
  return std::as_bytes(std::span(file));
}

// Returns the largest difference between the decoded region and the painted colours.
int largest_difference(const std::string& file, const Region& region, const Painting& painting) {
  ImageDecoder decoder;
  decoder.open(image_bytes(file));
  Pixels pixels;
  decoder.decode(region, pixels);
  int largest = 0;
  for (int y = 0; y < region.height; ++y) {
    for (int x = 0; x < 3 * region.width; ++x) {
      const int decoded = pixels.row(y)[x];
      const int painted = painting(region.top + y, region.left + x / 3, x % 3);
      largest = std::max(largest, std::abs(decoded - painted));
    }
  }
  return largest;
}

TEST(ImageDecoder, DecodesAnyRegionOfAnyKindOfJpeg) {
  for (const JpegKind kind : {JpegKind::colour, JpegKind::subsampled, JpegKind::progressive}) {
    const std::string file = jpeg_of(61, 83, kind, gradient);
    for (const Region& region : {Region{0, 0, 61, 83}, Region{17, 21, 30, 40}, Region{60, 82, 1, 1},
                                 Region{0, 50, 61, 1}, Region{33, 0, 5, 83}}) {
      EXPECT_LE(largest_difference(file, region, gradient), 14)
          << static_cast<int>(kind) << " " << region.top;
    }
  }
}

TEST(ImageDecoder, MakesThreeChannelsOfGreyImages) {
  const Painting grey = [](int row, int column, int) { return gradient(row, column, 0); };
  EXPECT_LE(largest_difference(jpeg_of(40, 30, JpegKind::grey, grey), {5, 6, 20, 20}, grey), 4);
}

TEST(ImageDecoder, MixesTheInksOfPrintFiles) {
  // Without black, inverted inks equal the colours.
  EXPECT_LE(largest_difference(jpeg_of(40, 30, JpegKind::cmyk, gradient), {5, 6, 20, 20}, gradient),
            4);
}

TEST(ImageDecoder, DecodesPngWhateverItIsCalled) {
  EXPECT_EQ(largest_difference(png_of(20, 30, gradient), {3, 4, 10, 20}, gradient), 0);
}

// Kinds of PNG files, each with the value 100 in all channels.
struct PngKind {
  int bits = 8, colour_type = PNG_COLOR_TYPE_RGB;
  int interlace = PNG_INTERLACE_NONE;
  bool transparent = false;  // by a tRNS chunk
  double gamma = 0;          // of a gAMA chunk; 0: none
};

void append_png(png_structp png, png_bytep bytes, std::size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(bytes), count);
}

std::string flat_png(int height, int width, const PngKind& kind) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, append_png, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               kind.bits, kind.colour_type, kind.interlace, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (kind.colour_type == PNG_COLOR_TYPE_PALETTE) {
    const png_color grey{100, 100, 100};
    png_set_PLTE(png, info, &grey, 1);
  }
  if (kind.transparent) {
    const png_byte alpha = 0;
    png_color_16 colour{};
    colour.red = colour.green = colour.blue = colour.gray = 100;
    png_set_tRNS(png, info, &alpha, 1, &colour);
  }
  if (kind.gamma != 0) {
    png_set_gAMA(png, info, kind.gamma);
  }
  png_write_info(png, info);
  // Each byte is a sample, half a sample of 16 bits, or an index of the palette.
  const bool indices = kind.colour_type == PNG_COLOR_TYPE_PALETTE;
  std::vector<png_byte> row(png_get_rowbytes(png, info), indices ? png_byte{0} : png_byte{100});
  std::vector<png_bytep> rows(static_cast<std::size_t>(height), row.data());
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

// TensorFlow's decoder gives the stored colours too: it puts no background behind what is
// transparent, applies no gamma, and takes the high byte of 16 bits.
TEST(ImageDecoder, DecodesEveryKindOfPngToItsStoredColours) {
  const std::vector<PngKind> kinds{{.bits = 16},
                                   {.bits = 16, .colour_type = PNG_COLOR_TYPE_RGBA},
                                   {.bits = 16, .colour_type = PNG_COLOR_TYPE_GRAY},
                                   {.colour_type = PNG_COLOR_TYPE_RGBA},
                                   {.colour_type = PNG_COLOR_TYPE_GRAY_ALPHA},
                                   {.colour_type = PNG_COLOR_TYPE_GRAY, .transparent = true},
                                   {.transparent = true},
                                   {.colour_type = PNG_COLOR_TYPE_PALETTE, .transparent = true},
                                   {.bits = 2, .colour_type = PNG_COLOR_TYPE_PALETTE},
                                   {.colour_type = PNG_COLOR_TYPE_GRAY, .gamma = 1.0},
                                   {.interlace = PNG_INTERLACE_ADAM7, .gamma = 1.0}};
  const Painting flat = [](int, int, int) { return std::uint8_t{100}; };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(largest_difference(flat_png(9, 13, kinds[i]), {2, 3, 5, 7}, flat), 0) << i;
  }
}

TEST(ImageDecoder, SaysThatAPngIsCutOff) {
  const std::string file = png_of(40, 50, gradient);
  for (const std::size_t bytes : {std::size_t{20}, file.size() / 2, file.size() - 1}) {
    EXPECT_THAT(error_of([&] {
                  ImageDecoder decoder;
                  Pixels pixels;
                  const std::string cut = file.substr(0, bytes);
                  decoder.open(image_bytes(cut));
                  decoder.decode({0, 0, 1, 1}, pixels);
                }),
                HasSubstr("the PNG file is damaged: the file ends within its pixels"))
        << bytes;
  }
}

TEST(ImageDecoder, DecodesFlatImagesOfTheTests) {
  for (const int value : {0, 1, 100, 128, 129, 255}) {
    const Painting flat = [value](int, int, int) { return static_cast<std::uint8_t>(value); };
    EXPECT_EQ(largest_difference(tests::FlatJpeg::encode(33, 70, value), {1, 2, 30, 60}, flat), 0)
        << value;
  }
}

TEST(ImageDecoder, SaysWhatIsWrongWithAnImage) {
  ImageDecoder decoder;
  EXPECT_THAT(error_of([&] { decoder.open(image_bytes("GIF89a")); }), HasSubstr("neither a JPEG"));
  EXPECT_THAT(error_of([&] { decoder.open({}); }), HasSubstr("neither a JPEG"));
  const std::string file = jpeg_of(50, 50, JpegKind::colour, gradient);
  EXPECT_THAT(error_of([&] { decoder.open(image_bytes(file.substr(0, 20))); }),
              HasSubstr("damaged"));
  Pixels pixels;
  const std::string cut = file.substr(0, file.size() * 9 / 10);
  EXPECT_THAT(error_of([&] {
                decoder.open(image_bytes(cut));
                decoder.decode({0, 0, 50, 50}, pixels);
              }),
              HasSubstr("Premature end"));
  decoder.open(image_bytes(cut));
  decoder.decode({0, 0, 5, 50}, pixels);  // decodes the rows before the damage
}

TEST(ImageDecoder, TakesNoMemoryForWhatAHeaderMerelyClaims) {
  std::string file = tests::FlatJpeg::encode(8, 8, 100);
  const std::size_t size = file.find("\xFF\xC0") + 5;
  file.replace(size, 4, "\xFF\xDC\xFF\xDC");
  ImageDecoder decoder;
  EXPECT_THAT(error_of([&] { decoder.open(image_bytes(file)); }),
              HasSubstr("claims 65500 x 65500"));
  std::string png = png_of(8, 8, gradient);
  png.replace(16, 8, std::string("\0\x0f\0\0\0\x0f\0\0", 8));
  EXPECT_FALSE(error_of([&] { decoder.open(image_bytes(png)); }).empty());
}

TEST(ImageDecoder, RefusesRegionsOutsideOfTheImage) {
  const std::string file = tests::FlatJpeg::encode(20, 30, 100);
  ImageDecoder decoder;
  Pixels pixels;
  for (const Region& region : {Region{0, 0, 21, 30}, Region{-1, 0, 5, 5}, Region{0, 26, 5, 5},
                               Region{0, 0, 0, 5}, Region{1 << 30, 0, 1 << 30, 5}}) {
    decoder.open(image_bytes(file));
    EXPECT_FALSE(error_of([&] { decoder.decode(region, pixels); }).empty()) << region.top;
  }
}

TEST(ImageDecoder, SurvivesAnyChangeOfItsBytes) {
  std::mt19937 random(3);  // NOLINT: the same changes every time
  ImageDecoder decoder;
  int refused = 0;
  for (const std::string& good :
       {jpeg_of(40, 50, JpegKind::subsampled, gradient), jpeg_of(40, 50, JpegKind::cmyk, gradient),
        jpeg_of(40, 50, JpegKind::progressive, gradient), png_of(10, 10, gradient)}) {
    for (int round = 0; round < 1500; ++round) {
      std::string bad = good;
      for (std::size_t change = 0; change <= random() % 3; ++change) {
        const std::size_t edge =
            random() % 2 == 0 ? std::min<std::size_t>(bad.size(), 700) : bad.size();
        bad[random() % edge] = static_cast<char>(random());
      }
      bad.resize(random() % 4 == 0 ? random() % bad.size() : bad.size());
      refused += static_cast<int>(!error_of([&] {
                                     const ImageSize size = decoder.open(image_bytes(bad));
                                     Pixels pixels;
                                     decoder.decode({size.height / 4, size.width / 4,
                                                     (size.height + 1) / 2, (size.width + 1) / 2},
                                                    pixels);
                                   }).empty());
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 6000);
}

}  // namespace
}  // namespace cnn::data
