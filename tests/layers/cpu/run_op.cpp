#include "tests/layers/cpu/run_op.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "runtime/error.h"
#include "tests/support/op_runner.h"

namespace cnn::test {
namespace {

using tests::HostTensor;

bool is_real(DataType type) { return type != DataType::u8 && type != DataType::i32; }

HostTensor plain_tensor(const Values& values) {
  HostTensor tensor(plain(values.desc));
  std::byte* const bytes = tensor.view().data;
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    if (values.desc.type == DataType::u8) {
      bytes[i] = static_cast<std::byte>(values.data[i]);
    } else if (values.desc.type == DataType::i32) {
      reinterpret_cast<std::int32_t*>(bytes)[i] = static_cast<std::int32_t>(values.data[i]);
    } else {
      reinterpret_cast<float*>(bytes)[i] = values.data[i];
    }
  }
  return tensor;
}

Values values_of(const HostTensor& tensor, const TensorDesc& described) {
  Values values{{.shape = described.shape, .type = described.type}, {}};
  values.data.resize(static_cast<std::size_t>(described.shape.elements()));
  const std::byte* const bytes = tensor.view().data;
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    if (described.type == DataType::u8) {
      values.data[i] = static_cast<float>(std::to_integer<int>(bytes[i]));
    } else if (described.type == DataType::i32) {
      values.data[i] = static_cast<float>(reinterpret_cast<const std::int32_t*>(bytes)[i]);
    } else {
      values.data[i] = reinterpret_cast<const float*>(bytes)[i];
    }
  }
  return values;
}

std::vector<TensorDesc> descriptions(const std::vector<Values>& in) {
  std::vector<TensorDesc> result;
  for (const Values& value : in) {
    result.push_back({.shape = value.desc.shape, .type = value.desc.type});
  }
  return result;
}

std::vector<HostTensor> plain_tensors(const std::vector<Values>& in) {
  std::vector<HostTensor> result;
  for (const Values& value : in) {
    result.push_back(plain_tensor(value));
  }
  return result;
}

std::vector<TensorView> views_of(const std::vector<HostTensor>& tensors) {
  std::vector<TensorView> result;
  for (const HostTensor& tensor : tensors) {
    result.push_back(tensor.view());
  }
  return result;
}

}  // namespace

Values random_values(Shape shape, DataType type, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  Values values{{.shape = shape, .type = type}, {}};
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const float value = draw(generator);
    values.data.push_back(type == DataType::bf16 ? to_float(to_bf16(value)) : value);
  }
  return values;
}

HostTensor pack(const KernelTable& table, const Values& values, const TensorDesc& desc) {
  return tests::converted(table, plain_tensor(values).view(), desc);
}

Values unpack(const KernelTable& table, const HostTensor& stored) {
  return values_of(tests::converted(table, stored.view(), plain(stored.desc())), stored.desc());
}

Ran run_fast(const KernelTable& table, const Op& op, const std::vector<Values>& in, Layout image) {
  Signature request{descriptions(in), {}};
  request.out = op.infer(request.in);
  for (auto* side : {&request.in, &request.out}) {
    for (TensorDesc& desc : *side) {
      const bool is_image = desc.shape.rank() == 4 && desc.shape[1] >= 8;
      desc.layout = is_image ? image : Layout::nchw;
    }
  }
  const std::vector<HostTensor> tensors = plain_tensors(in);
  const auto run = tests::run_op(table, op, request, views_of(tensors));
  check(run.has_value(), std::string(op.name()) + ": no kernel for " + to_string(request));
  Ran ran{run->signature, {}};
  for (std::size_t i = 0; i < run->out.size(); ++i) {
    ran.out.push_back(values_of(run->out[i], run->signature.out[i]));
  }
  return ran;
}

std::vector<Values> run_reference(const Op& op, const std::vector<Values>& in) {
  const std::vector<TensorDesc> inferred = op.infer(descriptions(in));
  const std::vector<HostTensor> tensors = plain_tensors(in);
  std::vector<HostTensor> results;
  for (const TensorDesc& desc : inferred) {
    results.emplace_back(plain(desc));
  }
  op.reference(views_of(tensors), views_of(results));
  std::vector<Values> out;
  for (std::size_t i = 0; i < results.size(); ++i) {
    out.push_back(values_of(results[i], plain(inferred[i])));
  }
  return out;
}

double distance(const Values& got, const Values& expected) {
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < expected.data.size(); ++i) {
    const double difference = std::abs(double{got.data.at(i)} - double{expected.data[i]});
    if (std::isnan(difference)) {
      return difference;
    }
    worst = std::max(worst, difference);
    largest = std::max(largest, std::abs(double{expected.data[i]}));
  }
  return is_real(expected.desc.type) ? worst / largest : worst;
}

}  // namespace cnn::test
