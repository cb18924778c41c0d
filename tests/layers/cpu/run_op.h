#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/kernel.h"

// Runs single ops through a kernel table and through their reference loops, on plain f32 data.
namespace cnn::test {

// Runs everything at once, on the caller's thread.
class InlineStream final : public Stream {
 public:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void host(std::function<void()> work) override { work(); }
  void record(Event& /*event*/) override {}
  void wait(Event& /*event*/) override {}
  void synchronize() override {}
};

// 64-byte aligned memory of a tensor, filled with NaN patterns.
class Storage {
 public:
  explicit Storage(std::size_t bytes);
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::vector<std::byte> owner_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A tensor as the test knows it: its true type, its values as plain f32 (u8 and i32 as floats).
struct Values {
  TensorDesc desc;
  std::vector<float> data;
};

// Draws in [-1, 1], rounded to the type; equal for equal seeds.
Values random_values(Shape shape, DataType type, unsigned seed);

// Bytes in the order of desc -> plain f32 and back, through the table's Convert.
Storage pack(const KernelTable& table, const Values& values, const TensorDesc& desc);
Values unpack(const KernelTable& table, const Storage& storage, const TensorDesc& desc);

struct Ran {
  KernelSpec spec;
  std::vector<Values> out;
  bool zero_padding = true;  // the channels that nchw16c adds to outputs are zero
};

// Asks the table with images in `image`, makes the kernel and runs it on poisoned outputs.
Ran run_fast(const KernelTable& table, const Op& op, const std::vector<Values>& in, Layout image);
std::vector<Values> run_reference(const Op& op, const std::vector<Values>& in);

// Largest difference, relative to the largest value expected.
double distance(const Values& got, const Values& expected);

}  // namespace cnn::test
