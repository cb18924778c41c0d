#include "layers/cpu/hash.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "layers/cpu/threads.h"

namespace cnn::layers::cpu {
namespace {

void expect_hash_of_one_thread(const TensorDesc& desc) {
  HashKeys keys;
  keys.prepare(desc.shape);
  std::vector<std::uint32_t> words(desc.bytes() / sizeof(std::uint32_t));
  std::uint32_t next = 1;
  for (std::uint32_t& word : words) {
    word = next = next * 1664525U + 1013904223U;
  }
  const TensorView view{desc, reinterpret_cast<std::byte*>(words.data())};
  EXPECT_EQ(parallel_hash(view, keys), hash_of(view, keys)) << to_string(desc);
}

TEST(ParallelHash, IsThatOfOneThreadInEveryLayout) {
  std::thread([] {  // a thread of its own, since OpenMP keeps the team
    use_unpinned_threads(4);
    for (const Shape& shape : {Shape{4, 40, 30, 30}, Shape{2, 3, 200, 200}, Shape{3, 20, 1, 1}}) {
      for (const Layout layout : {Layout::nchw, Layout::nhwc, Layout::nchw16c}) {
        expect_hash_of_one_thread({.shape = shape, .layout = layout});
      }
    }
    for (const Shape& shape : {Shape{300, 1000}, Shape{200000}, Shape{0, 3}, Shape{}}) {
      expect_hash_of_one_thread({.shape = shape});
    }
  })
      .join();
}

}  // namespace
}  // namespace cnn::layers::cpu
