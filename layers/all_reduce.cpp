#include "layers/all_reduce.h"

#include <algorithm>
#include <numeric>

#include "layers/operands.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

std::vector<std::size_t> join_small(std::span<const std::size_t> bytes, const BucketSizes& sizes) {
  std::vector<std::size_t> ends;
  std::size_t begin = 0;  // of the open bucket
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool follows_small = i > begin && bytes[i - 1] <= sizes.small;
    if (i > begin && (bytes[i] > sizes.small || !follows_small || i - begin >= sizes.joined)) {
      ends.push_back(i);
      begin = i;
    }
  }
  ends.push_back(bytes.size());
  return ends;
}

}  // namespace

std::vector<TensorDesc> AllReduce::infer(std::span<const TensorDesc> in) const {
  for (const TensorDesc& desc : in) {
    require(desc.type == DataType::f32, *this, in, "takes f32 tensors");
  }
  return {in.begin(), in.end()};
}

void AllReduce::reference(std::span<const TensorView> /*in*/,
                          std::span<const TensorView> /*out*/) const {
  throw Error("all_reduce: its result depends on other ranks; no loops of one can compute it");
}

std::vector<std::size_t> cut_buckets(std::span<const std::size_t> bytes, const BucketSizes& sizes) {
  if (bytes.empty()) {
    return {};
  }
  if (sizes.small > 0) {
    return join_small(bytes, sizes);
  }
  std::size_t tail = bytes.size() - 1;  // start of the last bucket
  for (std::size_t size = bytes[tail]; tail > 0 && size + bytes[tail - 1] <= sizes.last; --tail) {
    size += bytes[tail - 1];
  }
  std::vector<std::size_t> ends;
  std::size_t filled = 0;
  for (std::size_t i = 0; i < tail; ++i) {
    const std::size_t limit = ends.empty() ? sizes.first : sizes.others;
    if (filled > 0 && filled + bytes[i] > limit) {
      ends.push_back(i);
      filled = 0;
    }
    filled += bytes[i];
  }
  if (tail > 0) {
    ends.push_back(tail);
  }
  ends.push_back(bytes.size());
  return ends;
}

void append_exchange(std::span<Value> gradients, const BucketSizes& sizes, float factor) {
  check(!gradients.empty(), "all_reduce: there are no gradients to exchange");
  Graph& graph = *gradients.front().graph;
  std::vector<std::size_t> order(gradients.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const std::optional<NodeId> producer = graph.producer(gradients[i].id);
    return producer ? index_of(*producer) + 1 : 0;
  });
  std::vector<std::size_t> bytes;
  bytes.reserve(order.size());
  for (const std::size_t i : order) {
    bytes.push_back(gradients[i].desc().bytes());
  }
  std::size_t begin = 0, bucket = 0;
  for (const std::size_t end : cut_buckets(bytes, sizes)) {
    const std::span<const std::size_t> members = std::span(order).subspan(begin, end - begin);
    std::vector<Value> in;
    for (const std::size_t i : members) {
      in.push_back(gradients[i]);
    }
    const std::vector<Value> sums = emit_all(AllReduce(bucket++, factor), in);
    for (std::size_t k = 0; k < members.size(); ++k) {
      gradients[members[k]] = sums[k];
    }
    begin = end;
  }
}

}  // namespace cnn::layers
