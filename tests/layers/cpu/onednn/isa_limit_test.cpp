#include <dnnl.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "layers/cpu/isa.h"
#include "layers/cpu/onednn/onednn.h"

namespace cnn::layers::cpu {
namespace {

using testing::HasSubstr;
using testing::Not;
using Type = dnnl::memory::data_type;

// Returns the name of oneDNN's implementation of a convolution with bias and ReLU, or "" if it has
// none for this type.
std::string convolution_of(Type type) {
  const auto any = dnnl::memory::format_tag::any;
  dnnl::post_ops relu;
  relu.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(relu);
  const dnnl::convolution_forward::primitive_desc primitive(
      cpu_engine(), dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
      {{2, 32, 14, 14}, type, any}, {{32, 32, 3, 3}, type, any}, {{32}, Type::f32, any},
      {{2, 32, 14, 14}, type, any}, {1, 1}, {1, 1}, {1, 1}, attributes, /*allow_empty=*/true);
  return primitive ? primitive.impl_info_str() : "";
}

std::string product_of(Type type) {
  const auto rows = dnnl::memory::format_tag::ab;
  const dnnl::matmul::primitive_desc primitive(cpu_engine(), {{64, 256}, type, rows},
                                               {{256, 128}, type, rows}, {{64, 128}, type, rows},
                                               dnnl::primitive_attr(), /*allow_empty=*/true);
  return primitive ? primitive.impl_info_str() : "";
}

// The at_most tests run this with a limit. The names of product kernels do not always tell the set.
TEST(IsaLimit, LeavesOneDnnNoWiderInstructions) {
  const Isa isa = effective_isa();
  const std::vector<std::string> names{convolution_of(Type::f32), convolution_of(Type::bf16),
                                       product_of(Type::f32), product_of(Type::bf16)};
  EXPECT_THAT(names[0], HasSubstr(isa.avx512 ? "avx512_core" : "avx2"));
  for (const std::string& name : names) {
    if (!isa.avx512) {
      EXPECT_THAT(name, Not(HasSubstr("avx512")));
    }
    if (!isa.avx512_bf16) {
      EXPECT_THAT(name, Not(HasSubstr("core_bf16")));
    }
    if (!isa.avx512_fp16) {
      EXPECT_THAT(name, Not(HasSubstr("core_fp16")));
    }
    if (!isa.amx_bf16) {
      EXPECT_THAT(name, Not(HasSubstr("amx")));
    }
  }
}

}  // namespace
}  // namespace cnn::layers::cpu
