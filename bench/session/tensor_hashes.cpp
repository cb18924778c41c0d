#include "bench/session/tensor_hashes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "layers/elementwise.h"
#include "layers/initializer.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

std::size_t place_of(Lane lane) { return static_cast<std::size_t>(lane); }

}  // namespace

TensorHashes::TensorHashes(const StepPlan& plan, const Backend& backend)
    : backend_(backend), tensors_(*plan.graph) {
  std::array<std::size_t, lane_count> device_bytes{}, host_bytes{};
  for (const WrittenTensor& tensor : tensors_.all()) {
    const Lane lane = plan.graph->nodes()[index_of(tensor.node)].op->lane();
    std::size_t& device = device_bytes.at(place_of(lane));
    std::size_t& host = host_bytes.at(place_of(lane));
    keys_.prepare(hashed_shape(tensor.desc));
    host = std::max(host, tensor.desc.extent());
    if (tensor.desc.layout == Layout::packed) {
      add_unpacker(tensor, lane);
    }
    if (const Unpacker* const unpacker = unpacker_for(tensor.desc)) {
      keys_.prepare(unpacker->plain.shape);
      device = std::max(device, aligned(unpacker->plain.bytes()) + unpacker->workspace);
      host = std::max(host, unpacker->plain.bytes());
    }
  }
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    if (device_bytes.at(lane) > 0) {
      scratch_.at(lane).unpacked = backend.device->allocate(device_bytes.at(lane));
    }
    if (host_bytes.at(lane) > 0 && backend.has_own_memory()) {
      scratch_.at(lane).copied = backend.device->allocate_host(host_bytes.at(lane));
    }
  }
}

TensorHashes::~TensorHashes() = default;

void TensorHashes::add_unpacker(const WrittenTensor& tensor, Lane lane) {
  Unpacker* unpacker = unpacker_for(tensor.desc);
  const TensorDesc plain{.shape = tensor.desc.shape, .type = tensor.desc.type};
  const layers::Convert op(plain.type);
  const Signature signature{.in = {tensor.desc}, .out = {plain}};
  if (unpacker == nullptr) {
    const std::optional<KernelSpec> spec = backend_.kernels.describe(op, signature);
    if (!spec || spec->in != signature.in || spec->out != signature.out) {
      return;
    }
    unpacker = &unpackers_.emplace_back();
    unpacker->packed = tensor.desc;
    unpacker->plain = plain;
    unpacker->workspace = spec->workspace;
  }
  if (std::unique_ptr<Kernel>& kernel = unpacker->kernels.at(place_of(lane)); kernel == nullptr) {
    kernel = backend_.kernels.make(op, signature);
  }
}

TensorHashes::Unpacker* TensorHashes::unpacker_for(const TensorDesc& packed) {
  const auto found = std::ranges::find(unpackers_, packed, &Unpacker::packed);
  return found == unpackers_.end() ? nullptr : &*found;
}

std::uint64_t TensorHashes::key_of(std::size_t tensor) const {
  const WrittenTensor& written = tensors_.all()[tensor];
  const bool packed =
      written.desc.layout == Layout::packed &&
      std::ranges::find(unpackers_, written.desc, &Unpacker::packed) == unpackers_.end();
  return packed ? combine_hash(written.key, layers::fnv1a(to_string(written.desc))) : written.key;
}

void TensorHashes::begin(bool wanted) {
  wanted_ = wanted;
  work_.clear();
}

void TensorHashes::enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) {
  if (!wanted_) {
    return;
  }
  for (std::size_t t = tensors_.begin(node); t < tensors_.end(node); ++t) {
    Work& work = work_.emplace_back();
    work.tensor = t;
    work.view = tensors_.all()[t].view(operands);
    work.parallel = lane == Lane::compute;
    if (Unpacker* const unpacker = unpacker_for(work.view.desc)) {
      unpack(work, *unpacker, lane, stream);
    }
    if (backend_.has_own_memory() && work.view.desc.shape.elements() > 0) {
      std::byte* const copy = scratch_.at(place_of(lane)).copied.data();
      stream.copy(copy, work.view.data, work.view.desc.extent());
      work.view.data = copy;
    }
    stream.host([this, &work] { compute(work); });
  }
}

void TensorHashes::unpack(Work& work, Unpacker& unpacker, Lane lane, Stream& stream) {
  std::byte* const scratch = scratch_.at(place_of(lane)).unpacked.data();
  const TensorView plain{unpacker.plain, scratch};
  work.unpacking = {.in = {work.view},
                    .out = {plain},
                    .workspace = {scratch + aligned(plain.desc.bytes()), unpacker.workspace}};
  unpacker.kernels.at(place_of(lane))->run(stream, work.unpacking);
  work.view = plain;
}

void TensorHashes::compute(Work& work) const {
  const bool parallel = work.parallel && backend_.hash != nullptr;
  work.hash = parallel ? backend_.hash(work.view, keys_) : hash_of(work.view, keys_);
}

std::vector<TensorHash> TensorHashes::hashes() const {
  std::vector<TensorHash> all;
  all.reserve(work_.size());
  for (const Work& work : work_) {
    all.push_back({.tensor = work.tensor, .hash = work.hash});
  }
  return all;
}

std::uint64_t TensorHashes::combined() const {
  std::uint64_t hash = 0;
  for (const Work& work : work_) {
    hash = combine_hash(combine_hash(hash, work.tensor), work.hash);
  }
  return hash;
}

}  // namespace cnn::bench
