#include "allreduce/communicator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

constexpr std::size_t words = 6;       // of a hash
constexpr unsigned bits_of_word = 12;  // small enough for exact float sums over up to 4,096 ranks

// FNV-1a over integers.
class Hash {
 public:
  void add(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3U; }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

// Returns a pseudo-random pattern. In a proof rank r contributes bit r % 32 of it to the element: 0
// or 1, which every order of sums adds exactly, also in bf16 for up to 256 ranks.
std::uint32_t pattern(std::size_t element) {
  std::uint64_t mixed = (element + 1) * 0x9e3779b97f4a7c15U;  // the finaliser of SplitMix64
  mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9U;
  return static_cast<std::uint32_t>(mixed >> 32U);
}

float share_of(std::uint32_t pattern, int rank) {
  return static_cast<float>(pattern >> (static_cast<unsigned>(rank) % 32U) & 1U);
}

float sum_of(std::uint32_t pattern, int ranks) {
  const std::uint32_t some = (1U << static_cast<unsigned>(ranks) % 32U) - 1U;
  const int sum = ranks / 32 * std::popcount(pattern) + std::popcount(pattern & some);
  return static_cast<float>(sum);
}

// The message in which rank 0 broadcasts a choice, without what the settings fix.
struct ChoiceMessage {
  std::int32_t row =
      -1;  // index into the catalog; -1: rank 0 has no choice that this message can carry
  std::int32_t rings = 0, chunks = 0, window = 0, rotate = 0, owners = 0;
  std::array<std::int32_t, 32> dims{};  // ends at the first 0
  double seconds = 0;
};
static_assert(std::is_trivially_copyable_v<ChoiceMessage>);

ChoiceMessage message_of(const Candidate& choice) {
  const Options& options = choice.options;
  ChoiceMessage message;
  if (options.dims.size() <= message.dims.size()) {
    std::ranges::copy(options.dims, message.dims.begin());
    message.row = static_cast<std::int32_t>(choice.algorithm - catalog().data());
  }
  message.rings = options.rings;
  message.chunks = options.chunks;
  message.window = options.window;
  message.rotate = options.rotate ? 1 : 0;
  message.owners = options.owners;
  message.seconds = choice.seconds;
  return message;
}

Candidate choice_of(const ChoiceMessage& message, const Settings& settings) {
  const auto end = std::ranges::find(message.dims, 0);
  return {.algorithm = &catalog()[static_cast<std::size_t>(message.row)],
          .options = {.order = settings.order,
                      .wire = settings.wire,
                      .dims = {message.dims.begin(), end},
                      .rings = message.rings,
                      .chunks = message.chunks,
                      .window = message.window,
                      .rotate = message.rotate != 0,
                      .owners = message.owners},
          .seconds = message.seconds};
}

std::optional<FaultyTransport> fault_of(const Settings& settings, Transport& transport) {
  const bool mine = settings.fault && settings.fault->rank == transport.rank();
  return mine ? std::optional<FaultyTransport>(std::in_place, transport, *settings.fault)
              : std::nullopt;
}

// Returns the name of the phase before or after the last sum of a list.
std::string_view phase_of(const Algorithm& algorithm, bool is_reducing) {
  if (algorithm.name == "doubling") {
    return "exchange";
  }
  if (algorithm.name == "tree") {
    return is_reducing ? "reduce" : "broadcast";
  }
  return is_reducing ? "reduce-scatter" : "all-gather";
}

}  // namespace

BucketCommunicator::BucketCommunicator(Transport& transport, const simd::Loops& loops,
                                       Settings settings)
    : settings_(std::move(settings)),
      warning_(transport, settings_.stall),
      fault_(fault_of(settings_, warning_)),
      transport_(fault_ ? static_cast<Transport&>(*fault_) : warning_),
      loops_(loops),
      choice_(warning_, sizeof(ChoiceMessage)) {
  check(settings_.topology.ranks() == transport.ranks(),
        "the topology of an exchange has " + std::to_string(settings_.topology.ranks()) +
            " ranks, its transport " + std::to_string(transport.ranks()));
  const Bytes memory = transport.allocate_shared(words * sizeof(float));
  words_ = {reinterpret_cast<float*>(memory.data()), words};
  compare_ = std::make_unique<Engine>(
      warning_, loops_, make_plan(find("doubling"), settings_.topology, rank(), words, {}),
      std::span(&words_, 1));
}

bool BucketCommunicator::all_have(std::uint64_t hash) {
  std::array<float, words> mine{};
  for (std::size_t i = 0; i < words; ++i) {
    mine[i] = static_cast<float>(hash >> (bits_of_word * i) & ((1U << bits_of_word) - 1));
  }
  std::ranges::copy(mine, words_.begin());
  compares_ = true;
  compare_->run(1);
  compares_ = false;
  return std::ranges::equal(
      words_, mine, [&](float sum, float one) { return sum == one * static_cast<float>(ranks()); });
}

void BucketCommunicator::compare(std::size_t number, std::span<const std::span<float>> pieces) {
  Hash hash;
  hash.add(number);
  for (const std::span<float>& piece : pieces) {
    hash.add(piece.size());
  }
  hash.add(static_cast<std::uint64_t>(settings_.order));
  hash.add(static_cast<std::uint64_t>(settings_.wire));
  check(all_have(hash.value()),
        "ranks do not exchange the same: bucket " + std::to_string(number) + " of " +
            std::to_string(pieces.size()) + " tensors on rank " + std::to_string(rank()) +
            " differs from another rank's; start all ranks with the same flags");
}

void BucketCommunicator::compare_results(std::size_t number) {
  Hash hash;
  for (const std::span<float>& piece : buckets_[number].pieces) {
    for (const float value : piece) {
      hash.add(std::bit_cast<std::uint32_t>(value));
    }
  }
  check(all_have(hash.value()), "ranks have different sums: bucket " + std::to_string(number) +
                                    " on rank " + std::to_string(rank()) +
                                    " differs from another rank's after its reduction");
}

// Reduces numbers with known sums in the bucket, checks the result and restores the gradients.
void BucketCommunicator::prove(std::size_t number) {
  const Bucket& bucket = buckets_[number];
  std::vector<std::vector<float>> kept;
  kept.reserve(bucket.pieces.size());
  std::size_t at = 0;
  for (const std::span<float>& piece : bucket.pieces) {
    kept.emplace_back(piece.begin(), piece.end());
    for (float& value : piece) {
      value = share_of(pattern(at++), rank());
    }
  }
  bucket.engine->run(1);
  std::optional<std::size_t> wrong;
  at = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (const float value : bucket.pieces[i]) {
      wrong = !wrong && value != sum_of(pattern(at), ranks()) ? at : wrong;
      ++at;
    }
    std::ranges::copy(kept[i], bucket.pieces[i].begin());
  }
  check(!wrong, "a sum is wrong: element " + std::to_string(wrong.value_or(0)) + " of bucket " +
                    std::to_string(number) + " on rank " + std::to_string(rank()) + ", by " +
                    std::string(bucket.choice.algorithm->name));
}

// If rank 0 has no choice to send, every rank chooses by itself and throws the same error as rank
// 0.
const Candidate& BucketCommunicator::choose(std::size_t elements) {
  if (const auto known = choices_.find(elements); known != choices_.end()) {
    return known->second;
  }
  const auto own = [&] {
    return candidates_for(settings_, elements, transport_.channels()).front();
  };
  ChoiceMessage message;
  if (rank() == 0) {
    try {
      message = message_of(own());
    } catch (const Error&) {
      message.row = -1;
    }
  }
  choice_.run(std::as_writable_bytes(std::span(&message, 1)));
  return choices_.emplace(elements, message.row < 0 ? own() : choice_of(message, settings_))
      .first->second;
}

void BucketCommunicator::prepare(std::size_t number, std::span<const std::span<float>> pieces) {
  compare(number, pieces);
  std::size_t elements = 0;
  for (const std::span<float>& piece : pieces) {
    elements += piece.size();
  }
  if (buckets_.size() <= number) {
    buckets_.resize(number + 1);
  }
  Bucket& bucket = buckets_[number];
  bucket.pieces.assign(pieces.begin(), pieces.end());
  bucket.choice = choose(elements);
  RankPlan plan = make_plan(*bucket.choice.algorithm, settings_.topology, rank(), elements,
                            bucket.choice.options);
  const Bytes wire =
      bucket.engine == nullptr ? take_spare(message_bytes(elements)) : bucket.engine->wire();
  bucket.engine = std::make_unique<Engine>(transport_, loops_, std::move(plan), pieces, wire);
  if (settings_.proves) {
    prove(number);
  }
}

// Shared memory cannot be freed. If a spare buffer is too small, one of at least twice its size
// takes its place, so that a series of growing buckets takes at most four times the largest.
Bytes BucketCommunicator::take_spare(std::size_t bytes) {
  if (bytes == 0 || spare_.empty()) {
    return {};
  }
  const Bytes spare = std::exchange(spare_, {});
  return spare.size() >= bytes ? spare
                               : transport_.allocate_shared(std::max(bytes, 2 * spare.size()));
}

std::size_t BucketCommunicator::message_bytes(std::size_t elements) const {
  return settings_.wire == Wire::f32 ? 0 : elements * size_of(settings_.wire);
}

void BucketCommunicator::reserve(std::size_t elements) {
  if (const std::size_t bytes = message_bytes(elements); bytes > spare_.size()) {
    spare_ = transport_.allocate_shared(bytes);
  }
}

void BucketCommunicator::release(std::size_t bucket) {
  if (bucket >= buckets_.size() || buckets_[bucket].engine == nullptr) {
    return;
  }
  const Bytes wire = buckets_[bucket].engine->wire();
  if (wire.size() > spare_.size()) {
    spare_ = wire;
  }
  buckets_[bucket].engine.reset();
  buckets_[bucket].pieces.clear();
}

void BucketCommunicator::invalidate_addresses() {
  for (Bucket& bucket : buckets_) {
    bucket.pieces.clear();
  }
}

// Adds the position to errors about lost peers only.
void BucketCommunicator::all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                                    float factor) {
  reductions_.resize(std::max(reductions_.size(), bucket + 1));
  ++reductions_[bucket];
  try {
    reduce(bucket, pieces, factor);
  } catch (const PeerLost& lost) {
    throw PeerLost(lost.rank(), std::string(lost.what()) + " | in " + position_in(bucket),
                   lost.source(), lost.where());
  }
}

std::string BucketCommunicator::position_in(std::size_t bucket) const {
  const bool prepared = bucket < buckets_.size() && buckets_[bucket].engine != nullptr;
  const Progress* const progress = transport_.progress();
  return position_text({.progress = progress == nullptr ? 0 : progress->load(),
                        .reductions = reductions_[bucket],
                        .bucket = bucket,
                        .phase = compares_ || !prepared
                                     ? "comparing buckets"
                                     : phase_of(*buckets_[bucket].choice.algorithm,
                                                buckets_[bucket].engine->is_reducing())});
}

void BucketCommunicator::reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                                float factor) {
  warning_.begin(bucket);
  if (fault_) {
    fault_->begin(bucket);
  }
  if (bucket >= buckets_.size() || buckets_[bucket].pieces.empty()) {
    prepare(bucket, pieces);
  }
  const auto same = [](const std::span<float>& a, const std::span<float>& b) {
    return a.data() == b.data() && a.size() == b.size();
  };
  check(std::ranges::equal(pieces, buckets_[bucket].pieces, same),
        "bucket " + std::to_string(bucket) + " of an exchange has moved");
  buckets_[bucket].engine->run(factor);
  if (fault_) {
    fault_->end(pieces);
  }
  if (settings_.compares) {
    compare_results(bucket);
  }
}

}  // namespace cnn::allreduce
