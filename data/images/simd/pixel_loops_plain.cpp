#include "data/images/simd/loops.h"

namespace cnn::data::simd {
namespace {

struct Plain {};

}  // namespace

const PixelLoops& plain_pixel_loops() { return Loops<Plain>::table; }

}  // namespace cnn::data::simd
