#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <jerror.h>
#include <jpeglib.h>
#include <string>

#include "data/images/codec.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

// Bounds for hostile files. A block of 64 pixels takes at least one bit, and each scan of a
// progressive file is a pass over all coefficients; encoders write about ten scans.
constexpr std::int64_t max_pixels_per_byte = 4096;
constexpr int max_scans = 100;
constexpr long max_library_memory = 1L << 30;

// libjpeg reports errors through callbacks that must not return; as it is C, the callbacks use
// longjmp.
struct ErrorManager {
  jpeg_error_mgr base{};  // first member: the library knows only this part
  std::jmp_buf back{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

ErrorManager& manager_of(j_common_ptr info) { return *reinterpret_cast<ErrorManager*>(info->err); }

[[noreturn]] void leave(j_common_ptr info) {
  ErrorManager& manager = manager_of(info);
  (*info->err->format_message)(info, manager.message.data());
  std::longjmp(manager.back, 1);  // NOLINT: no object with a destructor lives in between
}

void on_message(j_common_ptr info, int level) {
  // The library would fill the rest of a truncated image with grey.
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) {
    leave(info);
  }
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > max_scans) {
    info->err->msg_code = JERR_BAD_PROGRESSION;
    leave(info);
  }
}

// Converts ink values of print files: Adobe's programs write them inverted.
void inks_to_rgb(const JSAMPLE* cmyk, bool inverted, int pixels, std::uint8_t* rgb) {
  for (int x = 0; x < pixels; ++x, cmyk += 4, rgb += 3) {
    const int black = inverted ? cmyk[3] : 255 - cmyk[3];
    for (int channel = 0; channel < 3; ++channel) {
      const int ink = inverted ? cmyk[channel] : 255 - cmyk[channel];
      rgb[channel] = static_cast<std::uint8_t>(black * ink / 255);
    }
  }
}

class Jpeg final : public Codec {
 public:
  Jpeg() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = leave;
    errors_.base.emit_message = on_message;
    if (setjmp(errors_.back) != 0) {  // NOLINT: as libjpeg asks for
      fail();
    }
    jpeg_create_decompress(&info_);
    progress_.progress_monitor = on_progress;
    info_.progress = &progress_;
    info_.mem->max_memory_to_use = max_library_memory;
  }
  ~Jpeg() override { jpeg_destroy_decompress(&info_); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  ImageSize open(std::span<const std::byte> encoded) override {
    jpeg_abort_decompress(&info_);
    if (!read_header(encoded)) {
      fail();
    }
    const ImageSize size{static_cast<int>(info_.image_height), static_cast<int>(info_.image_width)};
    const std::int64_t pixels = std::int64_t{size.height} * size.width;
    check(pixels <= max_pixels &&
              pixels <= max_pixels_per_byte * static_cast<std::int64_t>(encoded.size()),
          "the JPEG file claims " + std::to_string(size.width) + " x " +
              std::to_string(size.height) + " pixels in " + std::to_string(encoded.size()) +
              " bytes");
    return size;
  }

  void decode(const Region& region, Pixels& into) override {
    into.reserve(region);
    if (!decode_rows(region, into)) {
      fail();
    }
  }

 private:
  [[noreturn]] void fail() {
    jpeg_abort_decompress(&info_);
    throw Error("the JPEG file is damaged: " + std::string(errors_.message.data()));
  }

  // No object with a destructor may live in the next two functions: errors longjmp out of them.
  bool read_header(std::span<const std::byte> encoded) {
    if (setjmp(errors_.back) != 0) {  // NOLINT
      return false;
    }
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  bool decode_rows(const Region& region, Pixels& into) {
    if (setjmp(errors_.back) != 0) {  // NOLINT
      return false;
    }
    const bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    info_.dct_method = JDCT_IFAST;  // as upstream requests
    jpeg_start_decompress(&info_);
    JDIMENSION first = static_cast<JDIMENSION>(region.left);
    JDIMENSION columns = static_cast<JDIMENSION>(region.width);
    if (columns < info_.output_width) {
      jpeg_crop_scanline(&info_, &first, &columns);  // widens to whole blocks
    }
    if (region.top > 0) {
      jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(region.top));
    }
    JSAMPARRAY row =
        (*info_.mem->alloc_sarray)(reinterpret_cast<j_common_ptr>(&info_), JPOOL_IMAGE,
                                   columns * static_cast<JDIMENSION>(info_.output_components), 1);
    const JSAMPLE* const from =
        row[0] + static_cast<std::size_t>(static_cast<JDIMENSION>(region.left) - first) *
                     static_cast<std::size_t>(info_.output_components);
    for (int y = 0; y < region.height; ++y) {
      jpeg_read_scanlines(&info_, row, 1);
      std::uint8_t* const to = into.rgb.data() + static_cast<std::size_t>(y) * into.row_bytes();
      if (inks) {
        inks_to_rgb(from, info_.saw_Adobe_marker == TRUE, region.width, to);
      } else {
        std::copy_n(from, into.row_bytes(), to);
      }
    }
    jpeg_abort_decompress(&info_);  // rows below the region are never decoded
    return true;
  }

  jpeg_decompress_struct info_{};
  ErrorManager errors_;
  jpeg_progress_mgr progress_{};
};

}  // namespace

std::unique_ptr<Codec> make_jpeg_codec() { return std::make_unique<Jpeg>(); }

bool has_jpeg_codec() { return true; }

}  // namespace cnn::data
