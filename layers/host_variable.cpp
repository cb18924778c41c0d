#include "layers/host_variable.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "layers/operands.h"
#include "layers/optimizer.h"
#include "runtime/divide_up.h"

namespace cnn::layers {
namespace {

constexpr std::size_t float_bytes = sizeof(float);

std::size_t bytes_before(std::int64_t elements) {
  return static_cast<std::size_t>(elements) * float_bytes;
}

bool is_slice(const TensorDesc& desc) {
  return desc.shape.rank() == 1 && desc.type == DataType::f32 && desc.layout == Layout::nchw;
}

bool is_sums(const TensorDesc& desc) {
  return desc.shape.rank() == 1 && desc.type == DataType::u8 &&
         desc.shape[0] % static_cast<std::int64_t>(sizeof(double)) == 0;
}

// Views the part of a gradient that belongs to a slice.
TensorView part_of(const TensorView& whole, std::int64_t first, const TensorDesc& slice) {
  return {.desc = slice, .data = whole.data + bytes_before(first)};
}

std::span<double> doubles_of(const TensorView& view) {
  return {reinterpret_cast<double*>(view.data), view.desc.bytes() / sizeof(double)};
}

// A copy of a stream between one operand and a place inside another.
template <class Place>
class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(Place place) : place_(std::move(place)) {}
  void run(Stream& stream, const Operands& operands) override { place_(stream, operands); }

 private:
  Place place_;
};

template <class Place>
std::unique_ptr<Kernel> copy_kernel(Place place) {
  return std::make_unique<CopyKernel<Place>>(std::move(place));
}

}  // namespace

std::int64_t stored_floats(const TensorDesc& desc) {
  return static_cast<std::int64_t>(desc.bytes() / float_bytes);
}

std::vector<TensorDesc> LoadVariable::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(
      in[0].type == DataType::f32 && (!slice || first + slice->elements() <= stored_floats(in[0])),
      *this, in, "a variable is f32 and contains its slice");
  return {slice ? described(*slice, DataType::f32) : in[0]};
}

void LoadVariable::reference(std::span<const TensorView> in,
                             std::span<const TensorView> out) const {
  std::memcpy(out[0].data, in[0].data + bytes_before(first), out[0].desc.bytes());
}

std::vector<TensorDesc> StoreVariable::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(is_slice(in[0]) && in[1].type == DataType::f32 &&
              first + in[0].shape[0] <= stored_floats(in[1]),
          *this, in, "takes a slice f32 [n] and the variable that contains it");
  return {};
}

void StoreVariable::reference(std::span<const TensorView> in,
                              std::span<const TensorView> /*out*/) const {
  std::memcpy(in[1].data + bytes_before(first), in[0].data, in[0].desc.bytes());
}

std::size_t UpdateSlice::slice_index() const { return row_of(attributes.rule).has_powers ? 3 : 1; }

std::vector<TensorDesc> UpdateSlice::infer(std::span<const TensorDesc> in) const {
  const std::size_t slots = row_of(attributes.rule).slots.size();
  const std::size_t slice = slice_index();
  require_count(*this, in, slice + 2 + slots);
  require(
      attributes.decay.size() == 1 && attributes.copied.empty() && !attributes.automatic_loss_scale,
      *this, in, "updates one parameter without copies and automatic loss scale");
  for (std::size_t i = 0; i < slice; ++i) {
    require(in[i] == described({}, DataType::f32), *this, in, "rates and powers are f32 []");
  }
  require(is_slice(in[slice]) && in[slice + 1].type == DataType::f32 &&
              first + in[slice].shape[0] <= stored_floats(in[slice + 1]),
          *this, in, "the gradient is f32 and contains the slice");
  for (std::size_t s = 0; s < slots; ++s) {
    require(in[slice + 2 + s] == in[slice], *this, in, "a slice and its slots are f32 [n]");
  }
  const std::int64_t sums = divide_up(in[slice].shape[0], elements_per_sum);
  return {described({sums * static_cast<std::int64_t>(sizeof(double))}, DataType::u8)};
}

void UpdateSlice::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const std::size_t slice = slice_index();
  const std::span<const float> w = in[slice].as<float>();
  const std::span<double> sums = doubles_of(out[0]);
  const bool decays = attributes.decay[0] && attributes.weight_decay != 0;
  for (std::size_t s = 0; s < sums.size(); ++s) {
    const std::size_t begin = s * elements_per_sum;
    const std::size_t end = std::min<std::size_t>(begin + elements_per_sum, w.size());
    sums[s] = 0;
    for (std::size_t i = begin; decays && i < end; ++i) {
      sums[s] += static_cast<double>(w[i]) * w[i];
    }
  }
  std::vector<TensorView> operands(in.begin(), in.end());
  operands[slice + 1] = part_of(in[slice + 1], first, in[slice].desc);
  float half = 0;
  const TensorView ignored{.desc = described({1}, DataType::f32),
                           .data = reinterpret_cast<std::byte*>(&half)};
  Update(attributes, 1).reference(operands, std::span(&ignored, 1));
}

std::vector<TensorDesc> HalfSumOfSlices::infer(std::span<const TensorDesc> in) const {
  require(!in.empty() && std::ranges::all_of(in, is_sums), *this, in,
          "takes the sums of one or more slices");
  return {described({1}, DataType::f32)};
}

void HalfSumOfSlices::reference(std::span<const TensorView> in,
                                std::span<const TensorView> out) const {
  double sum = 0;
  for (const TensorView& view : in) {
    for (const double one : doubles_of(view)) {
      sum += one;
    }
  }
  out[0].as<float>()[0] = static_cast<float>(sum / 2);
}

std::optional<double> moved_bytes(const Op& op, std::span<const TensorDesc> in,
                                  std::span<const TensorDesc> out) {
  const auto bytes = [](const TensorDesc& desc) { return static_cast<double>(desc.bytes()); };
  if (dynamic_cast<const LoadVariable*>(&op) != nullptr) {
    return bytes(out[0]);
  }
  if (dynamic_cast<const StoreVariable*>(&op) != nullptr) {
    return bytes(in[0]);
  }
  if (const auto* update = dynamic_cast<const UpdateSlice*>(&op)) {
    // Reads a part of the gradient; reads and writes the slice and its slots.
    const auto slots = static_cast<double>(in.size() - update->slice_index() - 2);
    return (3 + 2 * slots) * bytes(in[update->slice_index()]);
  }
  return std::nullopt;
}

bool completes_operand(const Op& op, std::span<const TensorDesc> in) {
  if (const auto* store = dynamic_cast<const StoreVariable*>(&op)) {
    return store->first + in[0].shape[0] == stored_floats(in[1]);
  }
  return dynamic_cast<const UpdateSlice*>(&op) == nullptr;
}

void add_host_variable_rows(KernelTable& table) {
  const auto as_requested = [](const Op& /*op*/, const Signature& request) {
    return std::optional(KernelSpec{.in = request.in, .out = request.out});
  };
  table.add<LoadVariable>(as_requested, [](const LoadVariable& op, const Signature&) {
    return copy_kernel([from = bytes_before(op.first)](Stream& stream, const Operands& o) {
      stream.copy(o.out[0].data, o.in[0].data + from, o.out[0].desc.bytes());
    });
  });
  table.add<StoreVariable>(as_requested, [](const StoreVariable& op, const Signature&) {
    return copy_kernel([to = bytes_before(op.first)](Stream& stream, const Operands& o) {
      stream.copy(o.in[1].data + to, o.in[0].data, o.in[0].desc.bytes());
    });
  });
}

}  // namespace cnn::layers
