#include "tests/layers/backends.h"

#include "layers/cpu/kernels.h"

namespace cnn::tests {

std::vector<Backend> all_backends() {
  std::vector<Backend> result;
  for (const DataType compute : {DataType::f32, DataType::bf16}) {
    for (const Layout image : {Layout::nchw, Layout::nhwc, Layout::nchw16c}) {
      Backend backend{
          .name = "cpu_" + std::string(name_of(compute)) + "_" + std::string(name_of(image)),
          .table = {},
          .image = image,
          .compute = compute};
      layers::cpu::add_kernels(backend.table);
      result.push_back(std::move(backend));
    }
  }
  // Few CPU kernels compute in f16, so the pipeline surrounds all other nodes with conversions.
  result.push_back({.name = "cpu_f16_nhwc",
                    .table = result.back().table,
                    .image = Layout::nhwc,
                    .compute = DataType::f16});
  return result;
}

}  // namespace cnn::tests
