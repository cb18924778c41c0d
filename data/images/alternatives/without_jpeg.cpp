#include "data/images/codec.h"
#include "runtime/error.h"

namespace cnn::data {

std::unique_ptr<Codec> make_jpeg_codec() {
  throw Error(
      "this program was built without libjpeg-turbo and reads no JPEG files: install it "
      "(scripts/setup.sh) and build again with -DCNN_JPEG=ON");
}

bool has_jpeg_codec() { return false; }

}  // namespace cnn::data
