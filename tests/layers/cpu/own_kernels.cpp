#include "tests/layers/cpu/own_kernels.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "layers/cpu/isa.h"
#include "layers/cpu/rows.h"
#include "layers/initializer.h"
#include "tests/support/numeric.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {

std::vector<const layers::cpu::Loops*> runnable_loops() {
  const layers::cpu::Isa isa = layers::cpu::effective_isa();
  std::vector<const layers::cpu::Loops*> result;
  if (isa.avx2) {
    result.push_back(&layers::cpu::avx2_loops());
  }
  if (isa.avx512) {
    result.push_back(&layers::cpu::avx512_loops());
  }
  if (isa.avx512_bf16) {
    result.push_back(&layers::cpu::avx512_bf16_loops());
  }
  if (isa.avx512_fp16) {
    result.push_back(&layers::cpu::avx512_fp16_loops());
  }
  return result;
}

KernelTable own_kernels(const layers::cpu::Loops& loops) {
  KernelTable table;
  layers::cpu::add_own_kernels(table, loops);
  return table;
}

std::vector<Form> all_forms() {
  std::vector<Form> result;
  for (const layers::cpu::Loops* loops : runnable_loops()) {
    for (const DataType type : {DataType::f32, DataType::bf16}) {
      for (const Layout layout : {Layout::nhwc, Layout::nchw16c}) {
        result.push_back({loops, type, layout});
      }
    }
  }
  return result;
}

std::string name_of(const Form& form) {
  return std::string(form.loops->name) + "_" + std::string(cnn::name_of(form.type)) + "_" +
         std::string(cnn::name_of(form.layout));
}

std::size_t place_in_image(const Shape& shape, Layout layout, std::int64_t n, std::int64_t c,
                           std::int64_t p) {
  const std::int64_t pixels = shape[2] * shape[3];
  return static_cast<std::size_t>(layout == Layout::nhwc
                                      ? (n * pixels + p) * shape[1] + c
                                      : ((n * shape[1] / 16 + c / 16) * pixels + p) * 16 + c % 16);
}

HostTensor in_type(DataType type, const HostTensor& values) {
  HostTensor result({.shape = values.desc().shape, .type = type});
  pack(values.view(), result.view());
  return result;
}

HostTensor draws(Shape shape, DataType type, std::uint64_t seed) {
  TensorDesc desc{.shape = shape, .type = type};
  HostTensor result(plain(desc));
  const auto bits = [seed](std::size_t i) { return layers::random_bits(seed, i); };
  if (type == DataType::u8) {
    for (std::size_t i = 0; i < result.view().as<std::uint8_t>().size(); ++i) {
      result.view().as<std::uint8_t>()[i] = static_cast<std::uint8_t>(bits(i) % 10);
    }
    return result;
  }
  if (type == DataType::i32) {
    for (std::size_t i = 0; i < result.view().as<std::int32_t>().size(); ++i) {
      result.view().as<std::int32_t>()[i] = static_cast<std::int32_t>(bits(i) % 10);
    }
    return result;
  }
  for (std::size_t i = 0; i < result.view().as<float>().size(); ++i) {
    result.view().as<float>()[i] = static_cast<float>(bits(i) >> 40) * 0x1p-23F - 1;
  }
  round_to(type, result.view());
  return result;
}

HostTensor constant(Shape shape, float value) {
  HostTensor result(TensorDesc{.shape = shape});
  for (float& element : result.view().as<float>()) {
    element = value;
  }
  return result;
}

namespace {

// Returns the signature of a graph: images in the form's layout and type, other tensors unchanged.
Signature request(const Op& op, const std::vector<const HostTensor*>& in, const Form& form) {
  Signature result;
  for (const HostTensor* tensor : in) {
    TensorDesc desc = tensor->desc();
    const bool image = desc.shape.rank() == 4;
    desc.type = image && desc.type == DataType::f32 ? form.type : desc.type;
    result.in.push_back(desc);
  }
  result.out = op.infer(result.in);
  for (auto* side : {&result.in, &result.out}) {
    for (TensorDesc& desc : *side) {
      desc.layout = desc.shape.rank() == 4 ? form.layout : Layout::nchw;
    }
  }
  return result;
}

}  // namespace

void expect_like_reference(const Op& op, const std::vector<const HostTensor*>& in, const Form& form,
                           double tolerance) {
  const Signature signature = request(op, in, form);
  std::vector<TensorView> views;
  views.reserve(in.size());
  for (const HostTensor* tensor : in) {
    views.push_back(tensor->view());
  }
  auto run = run_op(own_kernels(*form.loops), op, signature, views);
  ASSERT_TRUE(run.has_value()) << "no kernel for " << op.name();
  std::vector<TensorView> before;
  before.reserve(in.size());
  for (const HostTensor& tensor : run->before) {
    before.push_back(tensor.view());
  }
  for (std::size_t i = 0; i < signature.in.size(); ++i) {
    EXPECT_EQ(run->signature.in[i], signature.in[i]) << "input " << i << " of " << op.name();
  }
  std::vector<HostTensor> expected;
  std::vector<TensorView> out;
  for (const TensorDesc& desc : signature.out) {
    expected.emplace_back(plain(desc));
    out.push_back(expected.back().view());
  }
  op.reference(before, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(run->signature.out[i], signature.out[i]) << "output " << i << " of " << op.name();
    round_to(signature.out[i].type, out[i]);
    const double allowed = signature.out[i].type == DataType::bf16 ? 0.01 : tolerance;
    if (const auto text = difference(out[i], run->out[i].view(), allowed)) {
      ADD_FAILURE() << op.name() << ", output " << i << " as " << name_of(form) << ": " << *text;
    }
  }
}

Threads::Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
Threads::~Threads() { omp_set_num_threads(before_); }

}  // namespace cnn::tests
