#include <limits>
#include <optional>
#include <type_traits>

#include "layers/cuda/block.cuh"
#include "layers/cuda/multi_tensor.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/host_variable.h"
#include "layers/optimizer.h"

// Multi-tensor optimizer updates, fused with weight decay, clipping, unscaling, the 16-bit copies
// of parameters and the L2 loss. Memory traffic is minimal: momentum reads parameter, gradient and
// slot and writes parameter and slot, 20 bytes per parameter (sgd 12, rmsprop and adam 28), plus 2
// bytes for a 16-bit copy. The partial sums of squares take 8 bytes per chunk.
namespace cnn::layers::cuda {

namespace {

// Indices in ChunkedTensor::data; the optimizer slots follow.
constexpr int parameter_array = 0;
constexpr int gradient_array = 1;
constexpr int slot_array = 2;

template <Rule rule>
constexpr int slots_of = 2;
template <>
constexpr int slots_of<Rule::sgd> = 0;
template <>
constexpr int slots_of<Rule::momentum> = 1;

// The hyper-parameters that are known when the graph is built; see UpdateAttributes.
struct Factors {
  float clip = 0;  // infinity: no clipping
  float momentum = 0;
  float keep0 = 0, keep1 = 0;  // decay of slots 0 and 1 per step
  float take0 = 0, take1 = 0;  // 1 - decay, the weight of the new value
  float epsilon = 0;
  float loss_scale = 1;  // if it is constant
};

// The scalar operands in device memory; nullptr if the rule has no such operand.
struct Scalars {
  const float* rate = nullptr;
  const float* loss_scale = nullptr;
  const std::int32_t* found_inf = nullptr;
  const float* beta1_power = nullptr;
  const float* beta2_power = nullptr;
};

// The update of single elements by one rule.
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

  // Returns the unscaled gradient plus weight decay, clipped. The comparisons keep a NaN.
  __device__ float effective_gradient(float w, float g, float decay) const {
    const float sum = fmaf(decay, w, g * unscale);
    const float low = sum < -factors.clip ? -factors.clip : sum;
    return low > factors.clip ? factors.clip : low;
  }

  // Returns the new parameter from the effective gradient g, and updates the slots a and b.
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

// The 16-bit copy of a parameter that kernels read; nullptr: this parameter has none.
template <class T>
struct ParameterCopy {
  T* copy;
};

// The further member of a table entry for copies of type T; float: there are no copies.
template <class T>
using CopyOf = std::conditional_t<std::is_same_v<T, float>, Nothing, ParameterCopy<T>>;
template <Rule rule, class T>
using Trained = ChunkedTensor<arrays_of<rule>, CopyOf<T>>;

// Updates `width` elements, unless `skip`, and returns the sum of squares of the old parameters.
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

// One block per chunk. Writes squares[chunk] = sum of w^2 before the update, or 0 for a parameter
// without weight decay. Changes no parameter if an overflow was found.
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

// One block per tensor. Writes results[tensor] = sum of w^2 / 2 from the sums of its chunks.
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

// One block. Writes half of the sum of all chunks of one tensor, in the order of half_sums.
__global__ void __launch_bounds__(block_threads)
    half_sum(const double* squares, std::int64_t chunks, float* result) {
  const double sum = sum_array(squares, chunks);
  if (threadIdx.x == 0) {
    *result = static_cast<float>(sum / 2);
  }
}

// Adds the values in sequence on a single thread, because SumInOrder promises the order of
// additions. before: the sum of the previous launches; nullptr: this is the first launch. Writes
// the total to `result` as f32 or, if that is nullptr, to `sum` for the next launch.
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
  const RuleFactors factors = row_of(a.rule).factors(a);
  return {.clip = a.clip ? static_cast<float>(*a.clip) : std::numeric_limits<float>::infinity(),
          .momentum = static_cast<float>(factors.momentum),
          .keep0 = static_cast<float>(factors.keep0),
          .keep1 = static_cast<float>(factors.keep1),
          .take0 = static_cast<float>(1 - factors.keep0),
          .take1 = static_cast<float>(1 - factors.keep1),
          .epsilon = static_cast<float>(factors.epsilon),
          .loss_scale = static_cast<float>(a.loss_scale)};
}

// The kernel of an Update node.
class UpdateBucket {
 public:
  // first: the element of the gradients that belongs to the first of the parameters.
  UpdateBucket(Update op, std::span<const TensorDesc> in, std::int64_t first = 0)
      : op_(std::move(op)),
        chunks_(chunks_of(in.subspan(op_.first_parameter(), op_.parameters))),
        first_(first) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    allocator.take<double>(chunks_);
    return allocator.bytes();
  }

  void operator()(Stream& stream, const Operands& o) const {
    update(stream, o, BumpAllocator(o.workspace).take<double>(chunks_), data_of<float>(o.out[0]));
  }

  // squares: receives the sum of squares of each chunk. halves: receives those of each parameter;
  // nullptr: nothing needs them.
  void update(Stream& stream, const Operands& o, double* squares, float* halves) const {
    switch (op_.attributes.rule) {
      case Rule::sgd:
        update_in_type<Rule::sgd>(stream, o, squares, halves);
        break;
      case Rule::momentum:
        update_in_type<Rule::momentum>(stream, o, squares, halves);
        break;
      case Rule::rmsprop:
        update_in_type<Rule::rmsprop>(stream, o, squares, halves);
        break;
      case Rule::adam:
        update_in_type<Rule::adam>(stream, o, squares, halves);
        break;
    }
  }

 private:
  template <Rule rule>
  void update_in_type(Stream& stream, const Operands& o, double* squares, float* halves) const {
    const bool copies = !op_.attributes.copied.empty();
    with_type(copies ? o.in[op_.first_copy()].desc.type : DataType::f32, [&](auto tag) {
      update_by<rule, typename decltype(tag)::Type>(stream, o, squares, halves);
    });
  }

  template <Rule rule, class T>
  void update_by(Stream& stream, const Operands& o, double* squares, float* halves) const {
    const Factors factors = factors_of(op_.attributes);
    const Scalars scalars = scalars_of(o);
    each_launch<arrays_of<rule>, CopyOf<T>>(
        op_.parameters, [&](std::size_t i) { return tensor<rule, T>(o, i); },
        [&](const auto& tensors, std::int64_t first_chunk) {
          cnn::cuda::launch(update_chunks<rule, T>, dim3(static_cast<unsigned>(tensors.chunks)),
                            block_threads, reduce_bytes<double>, stream, tensors, factors, scalars,
                            squares + first_chunk);
          if (halves == nullptr) {
            return;
          }
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
    result.data[gradient_array] += first_;
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
  std::int64_t first_;
};

// The kernel of an UpdateSlice, which has the operands of an Update of one parameter, but a
// gradient of more elements.
class SliceUpdate {
 public:
  SliceUpdate(const UpdateSlice& op, std::span<const TensorDesc> in)
      : bucket_(Update(op.attributes, 1), in, op.first) {}

  void operator()(Stream& stream, const Operands& o) const {
    static_assert(chunk_elements == elements_per_sum, "a chunk has one sum");
    static_assert(elements_per_part % chunk_elements == 0, "slices have whole chunks");
    bucket_.update(stream, o, data_of<double>(o.out[0]), nullptr);
  }

 private:
  UpdateBucket bucket_;
};

// Puts the sums of all slices together, then adds them up as those of a whole parameter.
void half_sum_of_slices(Stream& stream, const Operands& o) {
  std::byte* to = o.workspace.data();
  for (const TensorView& sums : o.in) {
    stream.copy(to, sums.data, sums.desc.bytes());
    to += sums.desc.bytes();
  }
  const auto chunks = (to - o.workspace.data()) / static_cast<std::ptrdiff_t>(sizeof(double));
  cnn::cuda::launch(half_sum, 1, block_threads, reduce_bytes<double>, stream,
                    reinterpret_cast<const double*>(o.workspace.data()),
                    static_cast<std::int64_t>(chunks), data_of<float>(o.out[0]));
}

KernelSpec describe_half_sum(const Signature& request) {
  KernelSpec spec{.in = request.in, .out = request.out};
  for (const TensorDesc& sums : request.in) {
    spec.workspace += sums.bytes();
  }
  return spec;
}

// Returns the spec of an Update: gradients, slots and copies take the layout of their parameter.
// Returns nothing if the copies are of different types.
std::optional<KernelSpec> describe_update(const Update& op, const Signature& request) {
  KernelSpec spec = like_parameters(op, request);
  for (std::size_t i = 1; i < op.attributes.copied.size(); ++i) {
    if (spec.in[op.first_copy() + i].type != spec.in[op.first_copy()].type) {
      return std::nullopt;
    }
  }
  spec.workspace = UpdateBucket(op, spec.in).workspace();
  return spec;
}

// One thread updates the automatic loss scale; see AdvanceLossScale.
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

// One thread updates the powers of Adam's bias correction. found_inf: nullptr if the loss scale is
// constant.
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
  table.add<UpdateSlice>(
      [](const UpdateSlice&, const Signature& request) {
        return std::optional(KernelSpec{.in = request.in, .out = request.out});
      },
      [](const UpdateSlice& op, const Signature& s) { return own_kernel(SliceUpdate(op, s.in)); });
  table.add<HalfSumOfSlices>(
      [](const HalfSumOfSlices&, const Signature& request) {
        return std::optional(describe_half_sum(request));
      },
      [](const HalfSumOfSlices&, const Signature&) { return own_kernel(half_sum_of_slices); });
  table.add<SumInOrder>(
      [](const SumInOrder&, const Signature& request) {
        KernelSpec spec{.in = request.in, .out = request.out};
        BumpAllocator allocator;
        allocator.take<double>(1);
        spec.workspace = allocator.bytes();
        return std::optional(std::move(spec));
      },
      [](const SumInOrder&, const Signature&) { return own_kernel(sum_in_order); });
  table.add<AdvanceLossScale>(
      [](const AdvanceLossScale&, const Signature& request) { return in_nhwc(request); },
      [](const AdvanceLossScale& op, const Signature&) {
        return own_kernel([n = op.every_n](Stream& stream, const Operands& o) {
          cnn::cuda::launch(advance_loss_scale, 1, 1, 0, stream, data_of<float>(o.in[0]),
                            data_of<float>(o.in[1]), data_of<const std::int32_t>(o.in[2]), n);
        });
      });
  table.add<AdvanceAdam>(
      [](const AdvanceAdam&, const Signature& request) { return in_nhwc(request); },
      [](const AdvanceAdam& op, const Signature&) {
        return own_kernel([op](Stream& stream, const Operands& o) {
          const auto* found = o.in.size() == 3 ? data_of<const std::int32_t>(o.in[2]) : nullptr;
          cnn::cuda::launch(advance_adam, 1, 1, 0, stream, data_of<float>(o.in[0]),
                            data_of<float>(o.in[1]), found, op.beta1, op.beta2);
        });
      });
}

}  // namespace cnn::layers::cuda
