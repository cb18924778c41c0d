#include "tests/layers/cpu/run_op.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#include "layers/elementwise.h"
#include "runtime/error.h"

namespace cnn::test {
namespace {

TensorDesc plain_like(const TensorDesc& desc) { return {.shape = desc.shape, .type = desc.type}; }

bool is_real(DataType type) { return type != DataType::u8 && type != DataType::i32; }

// Values <-> bytes of plain(desc).
void to_bytes(const Values& values, std::byte* bytes) {
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    if (values.desc.type == DataType::u8) {
      bytes[i] = static_cast<std::byte>(values.data[i]);
    } else if (values.desc.type == DataType::i32) {
      reinterpret_cast<std::int32_t*>(bytes)[i] = static_cast<std::int32_t>(values.data[i]);
    } else {
      reinterpret_cast<float*>(bytes)[i] = values.data[i];
    }
  }
}

Values from_bytes(const TensorDesc& desc, const std::byte* bytes) {
  Values values{plain_like(desc), {}};
  values.data.resize(static_cast<std::size_t>(desc.shape.elements()));
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    if (desc.type == DataType::u8) {
      values.data[i] = static_cast<float>(std::to_integer<int>(bytes[i]));
    } else if (desc.type == DataType::i32) {
      values.data[i] = static_cast<float>(reinterpret_cast<const std::int32_t*>(bytes)[i]);
    } else {
      values.data[i] = reinterpret_cast<const float*>(bytes)[i];
    }
  }
  return values;
}

void convert(const KernelTable& table, const TensorView& from, const TensorView& to) {
  const layers::Convert op(to.desc.type);
  const Signature signature{{from.desc}, {to.desc}};
  const auto spec = table.describe(op, signature);
  check(spec && spec->in == signature.in && spec->out == signature.out,
        "no conversion " + to_string(signature));
  const Storage workspace(spec->workspace);
  const Operands operands{{from}, {to}, {workspace.data(), workspace.bytes()}};
  InlineStream stream;
  table.make(op, signature)->run(stream, operands);
}

bool padding_is_zero(const TensorDesc& desc, const Storage& storage) {
  const std::int64_t channels = desc.shape.rank() == 4 ? desc.shape[1] : 0;
  if (desc.layout != Layout::nchw16c || channels % 16 == 0) {
    return true;
  }
  const std::size_t size = size_of(desc.type), pixel = 16 * size;
  const auto used = static_cast<std::size_t>(channels % 16) * size;
  const auto pixels = static_cast<std::size_t>(desc.shape[2] * desc.shape[3]);
  const auto blocks = static_cast<std::size_t>((channels + 15) / 16);
  for (std::size_t i = 0; i < storage.bytes() / pixel; ++i) {
    const std::byte* at = storage.data() + i * pixel;
    if (i / pixels % blocks == blocks - 1 &&
        std::any_of(at + used, at + pixel, [](std::byte b) { return b != std::byte{0}; })) {
      return false;
    }
  }
  return true;
}

}  // namespace

void InlineStream::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

Storage::Storage(std::size_t bytes)
    : owner_(bytes + 64, std::byte{0xff}), data_(owner_.data()), bytes_(bytes) {
  data_ += (64 - reinterpret_cast<std::uintptr_t>(data_) % 64) % 64;
}

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

Storage pack(const KernelTable& table, const Values& values, const TensorDesc& desc) {
  const TensorDesc as_plain = plain(values.desc);
  Storage source(as_plain.bytes()), result(desc.bytes());
  to_bytes(values, source.data());
  convert(table, {as_plain, source.data()}, {desc, result.data()});
  return result;
}

Values unpack(const KernelTable& table, const Storage& storage, const TensorDesc& desc) {
  const TensorDesc as_plain = plain(desc);
  Storage result(as_plain.bytes());
  convert(table, {desc, storage.data()}, {as_plain, result.data()});
  return from_bytes(as_plain, result.data());
}

Ran run_fast(const KernelTable& table, const Op& op, const std::vector<Values>& in, Layout image) {
  Signature asked;
  for (const Values& value : in) {
    asked.in.push_back(plain_like(value.desc));
  }
  asked.out = op.infer(asked.in);
  for (auto* side : {&asked.in, &asked.out}) {
    for (TensorDesc& desc : *side) {
      const bool is_image = desc.shape.rank() == 4 && desc.shape[1] >= 8;
      desc.layout = is_image ? image : Layout::nchw;
    }
  }
  const auto spec = table.describe(op, asked);
  check(spec.has_value(), std::string(op.name()) + ": no kernel for " + to_string(asked));
  const auto kernel = table.make(op, {spec->in, spec->out});
  std::vector<Storage> storage;
  Operands operands;
  for (std::size_t i = 0; i < in.size(); ++i) {
    storage.push_back(pack(table, in[i], spec->in[i]));
    operands.in.push_back({spec->in[i], storage.back().data()});
  }
  for (const TensorDesc& desc : spec->out) {
    storage.emplace_back(desc.bytes());
    operands.out.push_back({desc, storage.back().data()});
  }
  const Storage workspace(spec->workspace);
  operands.workspace = {workspace.data(), workspace.bytes()};
  InlineStream stream;
  kernel->run(stream, operands);
  kernel->run(stream, operands);  // kernels keep nothing from run to run
  Ran ran{*spec, {}, true};
  for (std::size_t i = 0; i < spec->out.size(); ++i) {
    ran.out.push_back(unpack(table, storage[in.size() + i], spec->out[i]));
    ran.zero_padding = ran.zero_padding && padding_is_zero(spec->out[i], storage[in.size() + i]);
  }
  return ran;
}

std::vector<Values> run_reference(const Op& op, const std::vector<Values>& in) {
  std::vector<TensorDesc> descs;
  std::vector<Storage> storage;
  std::vector<TensorView> in_views, out_views;
  for (const Values& value : in) {
    descs.push_back(plain_like(value.desc));
    storage.emplace_back(plain(value.desc).bytes());
    to_bytes(value, storage.back().data());
    in_views.push_back({plain(value.desc), storage.back().data()});
  }
  for (const TensorDesc& desc : op.infer(descs)) {
    storage.emplace_back(plain(desc).bytes());
    out_views.push_back({plain(desc), storage.back().data()});
  }
  op.reference(in_views, out_views);
  std::vector<Values> out;
  for (const TensorView& view : out_views) {
    out.push_back(from_bytes(view.desc, view.data));
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
