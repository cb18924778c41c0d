// Compares our pixels with those that TensorFlow computes for scripts/peers/images.py.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <map>

#include "data/file.h"
#include "data/imagenet/preprocess.h"

namespace cnn::data {
namespace {

constexpr int side = 224;
constexpr std::size_t values = std::size_t{3} * side * side;

std::vector<float> floats_of(const std::string& path) {
  const std::vector<std::byte> bytes = read_whole(path);
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

float largest_difference_of(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

struct Case {
  std::string file, method;
  Region crop;
  bool mirrored = false;
  std::string pixels;
};

std::vector<float> our_training_pixels(const Case& one, ResizeMethod method,
                                       std::span<const std::byte> file) {
  ImageDecoder decoder;
  Pixels pixels;
  decoder.open(file);
  decoder.decode(one.crop, pixels);
  std::vector<float> out(values);
  Resizer().resize(pixels,
                   {.rows = resize_axis(method, {one.crop.height, side, 0, side}),
                    .columns = resize_axis(method, {one.crop.width, side, 0, side}),
                    .mirrored = one.mirrored},
                   out.data());
  return out;
}

std::vector<float> our_evaluation_pixels(ResizeMethod method, std::span<const std::byte> file) {
  PreprocessScratch scratch;
  std::vector<float> out(values);
  preprocess({.file = file, .boxes = {}, .place = {}},
             {.side = side, .resize = static_cast<ResizeChoice>(method)}, false, scratch, out);
  for (float& value : out) {
    value = (value + 1) * 127.5F;
  }
  return out;
}

TEST(SlowTensorFlowPixels, AreOurs) {
  const char* list = std::getenv("CNN_TENSORFLOW_PIXELS");
  if (list == nullptr) {
    GTEST_SKIP() << "only scripts/peers/images.py runs this test";
  }
  const std::map<std::string, ResizeMethod> methods{{"nearest", ResizeMethod::nearest},
                                                    {"bilinear", ResizeMethod::bilinear},
                                                    {"bicubic", ResizeMethod::bicubic},
                                                    {"area", ResizeMethod::area}};
  std::map<std::string, float> largest;
  std::ifstream stream(list);
  Case one;
  int cases = 0;
  for (; stream >> one.file >> one.method >> one.crop.top >> one.crop.left >> one.crop.height >>
         one.crop.width >> one.mirrored >> one.pixels;
       ++cases) {
    const std::vector<std::byte> file = read_whole(one.file);
    const ResizeMethod method = methods.at(one.method);
    float& train = largest[one.method + ", training"];
    float& eval = largest[one.method + ", evaluation"];
    train = std::max(train, largest_difference_of(our_training_pixels(one, method, file),
                                                  floats_of(one.pixels + ".train")));
    eval = std::max(eval, largest_difference_of(our_evaluation_pixels(method, file),
                                                floats_of(one.pixels + ".eval")));
  }
  EXPECT_GT(cases, 0);
  for (const auto& [name, difference] : largest) {
    std::printf("%s: largest difference %.3f of 255\n", name.c_str(), difference);
    EXPECT_LT(difference, 0.1F) << name;
  }
}

}  // namespace
}  // namespace cnn::data
