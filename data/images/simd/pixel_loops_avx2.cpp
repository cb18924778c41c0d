#include "data/images/simd/loops.h"

namespace cnn::data::simd {
namespace {

struct Avx2 {};

}  // namespace

const PixelLoops& avx2_pixel_loops() { return Loops<Avx2>::table; }

}  // namespace cnn::data::simd
