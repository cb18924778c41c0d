#include "layers/cpu/hash.h"

#include <algorithm>
#include <atomic>

#include "layers/cpu/parallel.h"

namespace cnn::layers::cpu {

std::uint64_t parallel_hash(const TensorView& tensor, const HashKeys& keys) {
  const std::int64_t parts = hash_parts(tensor.desc);
  if (parts == 0) {
    return finish_hash(tensor.desc, 0);
  }
  const std::int64_t elements_of_part =
      std::max<std::int64_t>(1, tensor.desc.shape.elements() / parts);
  std::atomic<std::uint64_t> sum = 0;  // integer addition commutes: order does not matter
  parallel_for(parts, elements_per_thread / elements_of_part,
               [&](std::int64_t first, std::int64_t last) {
                 sum.fetch_add(partial_hash(tensor, keys, first, last), std::memory_order_relaxed);
               });
  return finish_hash(tensor.desc, sum.load());
}

}  // namespace cnn::layers::cpu
