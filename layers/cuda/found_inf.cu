#include <algorithm>
#include <limits>

#include "layers/cuda/block.cuh"
#include "layers/cuda/multi_tensor.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/optimizer.h"

// The overflow check of automatic loss scaling: whether any gradient has an infinity or a NaN.
// Memory traffic is minimal: every gradient is read once.
namespace cnn::layers::cuda {

namespace {

constexpr float largest = std::numeric_limits<float>::max();

// One block per chunk. Writes found[chunk]: more than 0 if an element is infinite or NaN.
__global__ void __launch_bounds__(block_threads)
    find_in_chunks(ChunkedTensors<1> tensors, std::int32_t* found) {
  const ChunkedTensor<1>& t = tensors.tensor[tensors.tensor_of_block()];
  std::int32_t any = 0;
  each_pack_of_chunk(static_cast<int>(blockIdx.x) - t.first_chunk, t.elements,
                     [&](std::int64_t at, auto width) {
                       float values[decltype(width)::value];
                       load<decltype(width)::value>(t.data[0] + at, values);
#pragma unroll
                       for (const float value : values) {
                         any |= fabsf(value) <= largest ? 0 : 1;
                       }
                     });
  any = sum_block(any);
  if (threadIdx.x == 0) {
    found[blockIdx.x] = any;
  }
}

// Writes 1 to result if any chunk has found one, else 0.
__global__ void __launch_bounds__(block_threads)
    join_found(const std::int32_t* found, std::int64_t count, std::int32_t* result) {
  const std::int32_t sum = sum_array(found, count);  // a chunk counts at most 256
  if (threadIdx.x == 0) {
    *result = sum != 0 ? 1 : 0;
  }
}

void find(Stream& stream, const Operands& o, std::int64_t chunks) {
  auto* const found = BumpAllocator(o.workspace).take<std::int32_t>(chunks);
  each_launch<1>(
      o.in.size(),
      [&](std::size_t i) {
        ChunkedTensor<1> tensor{};
        tensor.data[0] = data_of<float>(o.in[i]);
        tensor.elements = checked_elements(o.in[i].desc);
        return tensor;
      },
      [&](const ChunkedTensors<1>& tensors, std::int64_t first_chunk) {
        cnn::cuda::launch(find_in_chunks, dim3(static_cast<unsigned>(tensors.chunks)),
                          block_threads, reduce_bytes<std::int32_t>, stream, tensors,
                          found + first_chunk);
      });
  cnn::cuda::launch(join_found, 1, block_threads, reduce_bytes<std::int32_t>, stream, found, chunks,
                    data_of<std::int32_t>(o.out[0]));
}

std::optional<KernelSpec> describe(const Signature& request) {
  const auto fits = [](const TensorDesc& desc) {
    return desc.type == DataType::f32 && desc.pitch == 0;
  };
  if (!std::ranges::all_of(request.in, fits)) {
    return std::nullopt;
  }
  BumpAllocator allocator;
  allocator.take<std::int32_t>(chunks_of(request.in));
  return KernelSpec{.workspace = allocator.bytes(), .in = request.in, .out = request.out};
}

}  // namespace

void add_found_inf_rows(KernelTable& table) {
  table.add<FoundInf>(
      [](const FoundInf&, const Signature& request) { return describe(request); },
      [](const FoundInf&, const Signature& s) {
        return own_kernel([chunks = chunks_of(s.in)](Stream& stream, const Operands& o) {
          find(stream, o, chunks);
        });
      });
}

}  // namespace cnn::layers::cuda
