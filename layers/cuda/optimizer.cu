#include <limits>
#include <optional>
#include <type_traits>

#include "layers/cuda/block.cuh"
#include "layers/cuda/multi_tensor.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/optimizer.h"

// Bytes: momentum reads parameter, gradient and slot and writes parameter and slot, 20 a parameter
// (sgd 12, rmsprop and adam 28), and 2 for a 16-bit copy: the floors. The partial sums are 8 bytes
// per chunk.
namespace cnn::layers::cuda {

namespace {

// Where a bucket's arrays stand in a ChunkedTensor; slots follow.
constexpr int parameter_array = 0;
constexpr int gradient_array = 1;
constexpr int slot_array = 2;

template <Rule rule>
constexpr int slots_of = 2;
template <>
constexpr int slots_of<Rule::sgd> = 0;
template <>
constexpr int slots_of<Rule::momentum> = 1;

// Known when the graph is built; see UpdateAttributes.
struct Factors {
  float clip = 0;  // infinity: none
  float momentum = 0;
  float keep0 = 0, keep1 = 0;  // of the slots, from step to step
  float take0 = 0, take1 = 0;  // of what enters them
  float epsilon = 0;
  float loss_scale = 1;  // where it is constant
};

// Scalars in device memory; nullptr where the rule has none.
struct Scalars {
  const float* rate = nullptr;
  const float* loss_scale = nullptr;
  const std::int32_t* found_inf = nullptr;
  const float* beta1_power = nullptr;
  const float* beta2_power = nullptr;
};

// One step of a rule on `width` elements. slots: of this piece.
template <Rule rule>
struct Step {
  Factors factors;
  float rate = 0;
  float unscale = 1;

  __device__ Step(const Factors& f, const Scalars& scalars)
      : factors(f),
        rate(*scalars.rate),
        unscale(1 / (scalars.loss_scale != nullptr ? *scalars.loss_scale : f.loss_scale)) {
    if (scalars.beta1_power != nullptr) {
      rate *= sqrtf(1 - *scalars.beta2_power) / (1 - *scalars.beta1_power);
    }
  }

  // The gradient with its L2 term, clipped; written so that a NaN stays one.
  __device__ float effective_gradient(float w, float g, float decay) const {
    const float sum = fmaf(decay, w, g * unscale);
    const float low = sum < -factors.clip ? -factors.clip : sum;
    return low > factors.clip ? factors.clip : low;
  }

  // Returns the new w; a and b are the slots.
  __device__ float operator()(float w, float g, float& a, float& b) const {
    const Factors& f = factors;
    if constexpr (rule == Rule::sgd) {
      return w - rate * g;
    } else if constexpr (rule == Rule::momentum) {
      a = fmaf(f.momentum, a, g);
      return w - rate * fmaf(f.momentum, a, g);
    } else if constexpr (rule == Rule::rmsprop) {
      a = fmaf(f.keep0, a, f.take0 * (g * g));
      b = fmaf(f.momentum, b, rate * g / sqrtf(a + f.epsilon));
      return w - b;
    } else {
      a = fmaf(f.keep0, a, f.take0 * g);
      b = fmaf(f.keep1, b, f.take1 * (g * g));
      return w - rate * a / (sqrtf(b) + f.epsilon);
    }
  }
};

template <Rule rule>
constexpr int arrays_of = slot_array + slots_of<rule>;

// The copy of a parameter in the type that kernels read; nullptr: it has none.
template <class T>
struct ParameterCopy {
  T* copy;
};

// T: of the copies; float: there are none.
template <class T>
using CopyOf = std::conditional_t<std::is_same_v<T, float>, Nothing, ParameterCopy<T>>;
template <Rule rule, class T>
using Trained = ChunkedTensor<arrays_of<rule>, CopyOf<T>>;

// Updates `width` elements and returns the sum of the squares of the old parameters.
template <int width, Rule rule, class T>
__device__ double update_pack(const Trained<rule, T>& t, std::int64_t at, const Step<rule>& step,
                              bool skip) {
  constexpr int slots = slots_of<rule>;
  float w[width];
  float g[width];
  float slot[2][width] = {};
  load<width>(t.data[parameter_array] + at, w);
  double squares = 0;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    squares += static_cast<double>(w[i]) * w[i];
  }
  if (skip) {
    return squares;
  }
  load<width>(t.data[gradient_array] + at, g);
#pragma unroll
  for (int s = 0; s < slots; ++s) {
    load<width>(t.data[slot_array + s] + at, slot[s]);
  }
#pragma unroll
  for (int i = 0; i < width; ++i) {
    w[i] = step(w[i], step.effective_gradient(w[i], g[i], t.factor), slot[0][i], slot[1][i]);
  }
  store<width>(t.data[parameter_array] + at, w);
  if constexpr (!std::is_same_v<T, float>) {
    if (t.copy != nullptr) {
      store<width>(t.copy + at, w);
    }
  }
#pragma unroll
  for (int s = 0; s < slots; ++s) {
    store<width>(t.data[slot_array + s] + at, slot[s]);
  }
  return squares;
}

// A block a chunk. squares[chunk] = sum of w^2 before the update, 0 where nothing decays.
template <Rule rule, class T>
__global__ void __launch_bounds__(block_threads)
    update_chunks(ChunkedTensors<arrays_of<rule>, CopyOf<T>> tensors, Factors factors,
                  Scalars scalars, double* squares) {
  const int index = tensors.tensor_of_block();
  const Trained<rule, T>& t = tensors.tensor[index];
  const bool skip = scalars.found_inf != nullptr && *scalars.found_inf != 0;
  const Step<rule> step(factors, scalars);
  double sum = 0;
  each_pack_of_chunk(static_cast<int>(blockIdx.x) - t.first_chunk, t.elements,
                     [&](std::int64_t at, auto width) {
                       sum += update_pack<decltype(width)::value, rule, T>(t, at, step, skip);
                     });
  sum = sum_block(sum);
  if (threadIdx.x == 0) {
    squares[blockIdx.x] = t.factor != 0 ? sum : 0;
  }
}

// A block a tensor. squares: by chunk of this launch.
template <Rule rule, class T>
__global__ void __launch_bounds__(block_threads)
    half_sums(ChunkedTensors<arrays_of<rule>, CopyOf<T>> tensors, const double* squares,
              float* results) {
  const Trained<rule, T>& t = tensors.tensor[blockIdx.x];
  const std::int64_t chunks = (t.elements + chunk_elements - 1) / chunk_elements;
  const double sum = sum_array(squares + t.first_chunk, chunks);
  if (threadIdx.x == 0) {
    results[blockIdx.x] = static_cast<float>(sum / 2);
  }
}

// One thread, as the order of additions is promised. sum: so far; nullptr: these are the first.
// Writes either the sum that the next launch goes on from, or the result.
__global__ void add_in_order(const float* values, std::int64_t count, const double* before,
                             double* sum, float* result) {
  double all = before != nullptr ? *before : 0;
#pragma unroll 8
  for (std::int64_t i = 0; i < count; ++i) {
    all += values[i];
  }
  if (result != nullptr) {
    *result = static_cast<float>(all);
  } else {
    *sum = all;
  }
}

void sum_in_order(Stream& stream, const Operands& o) {
  auto* const sum = BumpAllocator(o.workspace).take<double>(1);
  for (std::size_t i = 0; i < o.in.size(); ++i) {
    const bool last = i + 1 == o.in.size();
    cnn::cuda::launch(add_in_order, 1, 1, 0, stream, data_of<const float>(o.in[i]),
                      o.in[i].desc.shape.elements(), i == 0 ? nullptr : sum, sum,
                      last ? data_of<float>(o.out[0]) : nullptr);
  }
}

Factors factors_of(const UpdateAttributes& a) {
  const RuleFactors of = row_of(a.rule).factors(a);
  return {.clip = a.clip ? static_cast<float>(*a.clip) : std::numeric_limits<float>::infinity(),
          .momentum = static_cast<float>(of.momentum),
          .keep0 = static_cast<float>(of.keep0),
          .keep1 = static_cast<float>(of.keep1),
          .take0 = static_cast<float>(1 - of.keep0),
          .take1 = static_cast<float>(1 - of.keep1),
          .epsilon = static_cast<float>(of.epsilon),
          .loss_scale = static_cast<float>(a.loss_scale)};
}

class UpdateBucket {
 public:
  UpdateBucket(Update op, std::span<const TensorDesc> in)
      : op_(std::move(op)), chunks_(chunks_of(in.subspan(op_.first_parameter(), op_.parameters))) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    allocator.take<double>(chunks_);
    return allocator.bytes();
  }

  void operator()(Stream& stream, const Operands& o) const {
    auto* const squares = BumpAllocator(o.workspace).take<double>(chunks_);
    switch (op_.attributes.rule) {
      case Rule::sgd:
        update_in_type<Rule::sgd>(stream, o, squares);
        break;
      case Rule::momentum:
        update_in_type<Rule::momentum>(stream, o, squares);
        break;
      case Rule::rmsprop:
        update_in_type<Rule::rmsprop>(stream, o, squares);
        break;
      case Rule::adam:
        update_in_type<Rule::adam>(stream, o, squares);
        break;
    }
  }

 private:
  template <Rule rule>
  void update_in_type(Stream& stream, const Operands& o, double* squares) const {
    const bool copies = !op_.attributes.copied.empty();
    with_type(copies ? o.in[op_.first_copy()].desc.type : DataType::f32,
              [&](auto tag) { update<rule, typename decltype(tag)::Type>(stream, o, squares); });
  }

  template <Rule rule, class T>
  void update(Stream& stream, const Operands& o, double* squares) const {
    const Factors factors = factors_of(op_.attributes);
    const Scalars scalars = scalars_of(o);
    auto* halves = data_of<float>(o.out[0]);
    each_launch<arrays_of<rule>, CopyOf<T>>(
        op_.parameters, [&](std::size_t i) { return tensor<rule, T>(o, i); },
        [&](const auto& tensors, std::int64_t first_chunk) {
          cnn::cuda::launch(update_chunks<rule, T>, dim3(static_cast<unsigned>(tensors.chunks)),
                            block_threads, reduce_bytes<double>, stream, tensors, factors, scalars,
                            squares + first_chunk);
          cnn::cuda::launch(half_sums<rule, T>, dim3(static_cast<unsigned>(tensors.count)),
                            block_threads, reduce_bytes<double>, stream, tensors,
                            static_cast<const double*>(squares + first_chunk), halves);
          halves += tensors.count;
        });
  }

  template <Rule rule, class T>
  Trained<rule, T> tensor(const Operands& o, std::size_t i) const {
    const UpdateAttributes& a = op_.attributes;
    Trained<rule, T> result{};
    for (int array = 0; array < arrays_of<rule>; ++array) {
      result.data[array] = data_of<float>(
          o.in[op_.first_parameter() + static_cast<std::size_t>(array) * op_.parameters + i]);
    }
    if constexpr (!std::is_same_v<T, float>) {
      const std::optional<std::size_t> copy = op_.copy_of(i);
      result.copy = copy ? data_of<T>(o.in[*copy]) : nullptr;
    }
    result.elements = checked_elements(o.in[op_.first_parameter() + i].desc);
    result.factor = a.decay[i] ? static_cast<float>(a.weight_decay) : 0;
    return result;
  }

  Scalars scalars_of(const Operands& o) const {
    const auto real = [&](std::size_t i) { return data_of<const float>(o.in[i]); };
    Scalars scalars{.rate = real(0)};
    if (op_.attributes.automatic_loss_scale) {
      scalars.loss_scale = real(1);
      scalars.found_inf = data_of<const std::int32_t>(o.in[2]);
    }
    if (row_of(op_.attributes.rule).has_powers) {
      scalars.beta1_power = real(op_.first_parameter() - 2);
      scalars.beta2_power = real(op_.first_parameter() - 1);
    }
    return scalars;
  }

  Update op_;
  std::int64_t chunks_;
};

// A parameter's gradient, slots and copy lie as it does; copies are of one type.
std::optional<KernelSpec> describe_update(const Update& op, const Signature& asked) {
  KernelSpec spec = like_parameters(op, asked);
  for (std::size_t i = 1; i < op.attributes.copied.size(); ++i) {
    if (spec.in[op.first_copy() + i].type != spec.in[op.first_copy()].type) {
      return std::nullopt;
    }
  }
  spec.workspace = UpdateBucket(op, spec.in).workspace();
  return spec;
}

__global__ void advance_loss_scale(float* loss_scale, float* count, const std::int32_t* found_inf,
                                   double every_n) {
  if (*found_inf != 0) {
    *loss_scale /= 2;
    *count = 0;
  } else if (*count < every_n) {
    *count += 1;
  } else {
    *loss_scale *= 2;
    *count = 0;
  }
}

// found_inf: nullptr where the loss scale is constant.
__global__ void advance_adam(float* beta1_power, float* beta2_power, const std::int32_t* found_inf,
                             double beta1, double beta2) {
  if (found_inf == nullptr || *found_inf == 0) {
    *beta1_power = static_cast<float>(*beta1_power * beta1);
    *beta2_power = static_cast<float>(*beta2_power * beta2);
  }
}

}  // namespace

void add_optimizer_rows(KernelTable& table) {
  table.add<Update>(describe_update, [](const Update& op, const Signature& s) {
    return own_kernel(UpdateBucket(op, s.in));
  });
  table.add<SumInOrder>(
      [](const SumInOrder&, const Signature& asked) {
        KernelSpec spec{.in = asked.in, .out = asked.out};
        BumpAllocator allocator;
        allocator.take<double>(1);
        spec.workspace = allocator.bytes();
        return std::optional(std::move(spec));
      },
      [](const SumInOrder&, const Signature&) { return own_kernel(sum_in_order); });
  table.add<AdvanceLossScale>(
      [](const AdvanceLossScale&, const Signature& asked) { return in_nhwc(asked); },
      [](const AdvanceLossScale& op, const Signature&) {
        return own_kernel([n = op.every_n](Stream& stream, const Operands& o) {
          cnn::cuda::launch(advance_loss_scale, 1, 1, 0, stream, data_of<float>(o.in[0]),
                            data_of<float>(o.in[1]), data_of<const std::int32_t>(o.in[2]), n);
        });
      });
  table.add<AdvanceAdam>(
      [](const AdvanceAdam&, const Signature& asked) { return in_nhwc(asked); },
      [](const AdvanceAdam& op, const Signature&) {
        return own_kernel([op](Stream& stream, const Operands& o) {
          const auto* found = o.in.size() == 3 ? data_of<const std::int32_t>(o.in[2]) : nullptr;
          cnn::cuda::launch(advance_adam, 1, 1, 0, stream, data_of<float>(o.in[0]),
                            data_of<float>(o.in[1]), found, op.beta1, op.beta2);
        });
      });
}

}  // namespace cnn::layers::cuda
