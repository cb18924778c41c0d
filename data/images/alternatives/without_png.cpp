#include "data/images/codec.h"
#include "runtime/error.h"

namespace cnn::data {

std::unique_ptr<Codec> make_png_codec() {
  throw Error(
      "this program was built without libpng and reads no PNG files: install it "
      "(scripts/setup.sh) and build again with -DCNN_PNG=ON");
}

}  // namespace cnn::data
