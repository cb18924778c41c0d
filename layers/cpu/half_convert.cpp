#include <type_traits>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "layers/elementwise.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {

namespace {

template <class To>
To stored(float value) {
  if constexpr (std::is_same_v<To, Float16>) {
    return to_f16(value);
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bf16(value);
  } else {
    return value;
  }
}

float opened(float value) { return value; }
template <class From>
float opened(From value) {
  return to_float(value);
}

template <class From, class To>
void convert_in_order(const TensorView& x, const TensorView& y) {
  const From* const in = x.as<From>().data();
  To* const out = y.as<To>().data();
  parallel_elements(y.desc, [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t i = first; i < first + n; ++i) {
      out[i] = stored<To>(opened(in[i]));
    }
  });
}

// Calls visit with a value of the type's storage.
template <class Visit>
void with_storage(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::f32:
      return visit(float{});
    case DataType::f16:
      return visit(Float16{});
    case DataType::bf16:
      return visit(BFloat16{});
    case DataType::i32:
    case DataType::u8:
      break;
  }
  throw Error("convert: " + std::string(name_of(type)) + " is no real type");
}

void convert(const Operands& o) {
  const TensorView& x = o.in[0];
  const TensorView& y = o.out[0];
  with_storage(x.desc.type, [&](auto from) {
    with_storage(y.desc.type, [&](auto to) {
      if (x.desc.layout == y.desc.layout) {
        convert_in_order<decltype(from), decltype(to)>(x, y);
      } else {
        map_images<decltype(from), decltype(to)>(
            x, y, [](auto value) { return stored<decltype(to)>(opened(value)); });
      }
    });
  });
}

}  // namespace

// Adds Convert from and to f16, which oneDNN supports only on processors that compute in f16. No
// operand is packed.
void add_half_convert_rows(KernelTable& table) {
  table.add<Convert>(
      [](const Convert&, const Signature& request) -> std::optional<KernelSpec> {
        const TensorDesc& x = request.in[0];
        const TensorDesc& y = request.out[0];
        const bool half = x.type == DataType::f16 || y.type == DataType::f16;
        if (!half || x.layout == Layout::packed || y.layout == Layout::packed) {
          return std::nullopt;
        }
        return as_requested(request);
      },
      [](const Convert&, const Signature&) { return own_kernel(convert); });
}

}  // namespace cnn::layers::cpu
