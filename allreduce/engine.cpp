#include "allreduce/engine.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cnn::allreduce {
namespace {

simd::Type type_of(Wire wire) {
  return wire == Wire::bf16  ? simd::Type::bf16
         : wire == Wire::f16 ? simd::Type::f16
                             : simd::Type::f32;
}

}  // namespace

// Resolves the ranges of a plan to addresses.
class Engine::Resolver {
 public:
  Resolver(Engine& engine, std::span<const std::span<float>> buffer)
      : engine_(engine), buffer_(buffer), narrow_(engine.plan_.wire != Wire::f32) {}

  void resolve() {
    for (const Chunk& chunk : engine_.plan_.chunks) {
      ChunkState state;
      narrowed_.clear();
      for (const Action& action : chunk.actions) {
        state.actions.push_back(std::visit([&](const auto& a) { return this->of(a); }, action));
      }
      state.complete.resize(chunk.actions.size());
      engine_.chunks_.push_back(std::move(state));
    }
    std::size_t operand = 0, output = 0;  // the tables no longer grow
    for (simd::Sum& sum : engine_.sums_) {
      sum.operands = &engine_.operands_[operand];
      sum.to = &engine_.outputs_[output];
      operand += sum.count;
      output += sum.outputs;
    }
  }

 private:
  // A contiguous part of a range.
  struct Extent {
    float* data;
    std::size_t first, n;  // in elements from the start of the range
  };
  std::vector<Extent> extents(const Range& range) const {
    std::vector<Extent> result;
    std::size_t begin = 0;  // of the piece in the buffer
    for (const std::span<float>& piece : buffer_) {
      const std::size_t from = std::max(begin, range.begin);
      const std::size_t to = std::min(begin + piece.size(), range.end);
      if (from < to) {
        result.push_back({piece.data() + (from - begin), from - range.begin, to - from});
      }
      begin += piece.size();
    }
    check(range.end <= begin, "an all-reduce has more elements than its buffer");
    return result;
  }

  Pieces store(std::span<const Bytes> pieces) {
    auto& all = engine_.pieces_;
    const Pieces result{static_cast<std::uint32_t>(all.size()),
                        static_cast<std::uint32_t>(pieces.size())};
    all.insert(all.end(), pieces.begin(), pieces.end());
    return result;
  }
  Pieces own(const Range& range) {
    std::vector<Bytes> pieces;
    for (const Extent& s : extents(range)) {
      pieces.push_back(std::as_writable_bytes(std::span(s.data, s.n)));
    }
    return store(pieces);
  }
  Pieces wire(const Range& range, const Pieces& own) {
    if (!narrow_) {
      return own;
    }
    const Bytes place = engine_.wire_.subspan(2 * range.begin, 2 * range.size());
    return store({&place, 1});
  }

  Resolved of(const Send& send) {
    const Pieces own_pieces = own(send.range);
    const bool first = narrow_ && std::ranges::find(narrowed_, send.range) == narrowed_.end();
    if (first) {
      narrowed_.push_back(send.range);
    }
    return {.own = own_pieces, .wire = wire(send.range, own_pieces), .narrows = first};
  }
  Resolved of(const Receive& receive) {
    const Pieces own_pieces = own(receive.range);
    Resolved result{.own = own_pieces, .wire = wire(receive.range, own_pieces)};
    result.to = result.wire;
    if (receive.scratch_offset) {
      const std::size_t size = size_of(engine_.plan_.wire);
      const Bytes place = Bytes(engine_.scratch_)
                              .subspan(*receive.scratch_offset * size, receive.range.size() * size);
      result.to = store({&place, 1});
    }
    return result;
  }
  Resolved of(const Wait& /*wait*/) {
    narrowed_.clear();
    return {};
  }
  static Resolved of(const Barrier& /*barrier*/) { return {}; }

  float* address_of(int rank, float* own_place) const {
    if (rank == engine_.transport_.rank()) {
      return own_place;
    }
    std::byte* const place =
        engine_.transport_.peer_address(rank, reinterpret_cast<std::byte*>(own_place));
    if (place == nullptr) {  // check() would build the text in every call
      throw Error("an all-reduce needs the memory of rank " + std::to_string(rank) +
                  ", which is not addressable from rank " +
                  std::to_string(engine_.transport_.rank()));
    }
    return reinterpret_cast<float*>(place);
  }
  simd::Operand resolve(const Operand& operand, const Extent& s) const {
    const std::size_t size = size_of(engine_.plan_.wire);
    switch (operand.source) {
      case Operand::Source::own_buffer:
        break;
      case Operand::Source::scratch:
        return {engine_.scratch_.data() + (operand.index + s.first) * size,
                type_of(engine_.plan_.wire)};
      case Operand::Source::peer_buffer:
        return {address_of(static_cast<int>(operand.index), s.data), simd::Type::f32};
    }
    return {s.data, simd::Type::f32};
  }

  Resolved of(const Sum& sum) {
    Resolved result{.first_sum = static_cast<std::uint32_t>(engine_.sums_.size())};
    const std::vector<int> self{engine_.transport_.rank()};
    const std::vector<int>& into = sum.into ? engine_.plan_.groups[*sum.into] : self;
    for (const Extent& s : extents(sum.range)) {
      for (const Operand& operand : engine_.plan_.operands_of(sum)) {
        engine_.operands_.push_back(resolve(operand, s));
      }
      for (const int rank : into) {
        engine_.outputs_.push_back(address_of(rank, s.data));
      }
      simd::Sum part;
      part.count = sum.operand_count;
      part.outputs = into.size();
      part.n = s.n;
      part.pairwise = sum.pairwise;
      part.round_to = sum.last || sum.rounds ? type_of(engine_.plan_.wire) : simd::Type::f32;
      engine_.sums_.push_back(part);
      ++result.sums;
    }
    return result;
  }

  Engine& engine_;
  std::span<const std::span<float>> buffer_;
  bool narrow_;
  std::vector<Range> narrowed_;  // the ranges that were sent since the last Wait
};

Engine::Engine(Transport& transport, const simd::Loops& loops, RankPlan plan,
               std::span<const std::span<float>> buffer, Bytes wire)
    : transport_(transport),
      loops_(loops),
      plan_(std::move(plan)),
      scratch_(plan_.scratch * size_of(plan_.wire)),
      wire_(wire) {
  check(plan_.chunks.size() <= transport.channels(),
        "an all-reduce has " + std::to_string(plan_.chunks.size()) + " chunks; ranks have " +
            std::to_string(transport.channels()) + " channels");
  if (plan_.wire != Wire::f32 && wire_.empty()) {
    std::size_t elements = 0;
    for (const std::span<float>& piece : buffer) {
      elements += piece.size();
    }
    wire_ = transport.allocate_shared(elements * size_of(plan_.wire));
  }
  Resolver(*this, buffer).resolve();
}

void Engine::run(float factor) {
  factor_ = factor;
  for (ChunkState& chunk : chunks_) {
    chunk.next = chunk.open_from = 0;
    chunk.arrived = chunk.done = false;
  }
  std::size_t first = 0;  // the first chunk that is not done
  while (first < chunks_.size()) {
    bool progressed = false;
    for (std::size_t chunk = first; chunk < chunks_.size() && may_start(chunk); ++chunk) {
      progressed = advance(chunk) || progressed;
    }
    while (first < chunks_.size() && chunks_[first].done) {
      ++first;
    }
    if (progressed || first == chunks_.size()) {
      transport_.busy();
    } else {
      transport_.idle(awaited_rank());
    }
  }
}

bool Engine::may_start(std::size_t chunk) const {
  return std::ranges::all_of(plan_.chunks[chunk].after,
                             [&](std::size_t earlier) { return chunks_[earlier].done; });
}

bool Engine::advance(std::size_t chunk) {
  ChunkState& state = chunks_[chunk];
  const std::vector<Action>& actions = plan_.chunks[chunk].actions;
  bool progressed = false;
  while (!state.done) {
    if (state.next == actions.size()) {
      if (!messages_complete(chunk)) {
        return progressed;
      }
      state.done = true;
      return true;
    }
    if (!std::visit([&](const auto& action) { return step(chunk, action); }, actions[state.next])) {
      return progressed;
    }
    ++state.next;
    progressed = true;
  }
  return progressed;
}

bool Engine::step(std::size_t chunk, const Send& send) {
  ChunkState& state = chunks_[chunk];
  const Resolved& action = state.actions[state.next];
  if (action.narrows) {
    std::byte* to = at(action.wire)[0].data();
    for (const Bytes& piece : at(action.own)) {
      const std::size_t n = piece.size() / sizeof(float);
      loops_.narrow(reinterpret_cast<const float*>(piece.data()),
                    reinterpret_cast<std::uint16_t*>(to), n, type_of(plan_.wire));
      to += 2 * n;
    }
  }
  state.complete[state.next] = false;
  transport_.send(send.to, chunk, at(action.wire));
  return true;
}

bool Engine::step(std::size_t chunk, const Receive& receive) {
  ChunkState& state = chunks_[chunk];
  const Resolved& action = state.actions[state.next];
  state.complete[state.next] = false;
  transport_.receive(receive.from, chunk, at(action.wire), at(action.to));
  return true;
}

bool Engine::complete(std::size_t chunk, std::size_t action) {
  const Action& what = plan_.chunks[chunk].actions[action];
  if (const Send* const send = std::get_if<Send>(&what)) {
    return transport_.sent(send->to, chunk);
  }
  const Receive* const receive = std::get_if<Receive>(&what);
  if (receive == nullptr) {
    return true;
  }
  if (!transport_.received(receive->from, chunk)) {
    return false;
  }
  if (plan_.wire != Wire::f32 && !receive->scratch_offset) {
    const Resolved& resolved = chunks_[chunk].actions[action];
    const std::byte* from = at(resolved.wire)[0].data();
    for (const Bytes& piece : at(resolved.own)) {
      const std::size_t n = piece.size() / sizeof(float);
      loops_.widen(reinterpret_cast<const std::uint16_t*>(from),
                   reinterpret_cast<float*>(piece.data()), n, type_of(plan_.wire));
      from += 2 * n;
    }
  }
  return true;
}

bool Engine::messages_complete(std::size_t chunk) {
  ChunkState& state = chunks_[chunk];
  bool all = true;
  for (std::size_t i = state.open_from; i < state.next; ++i) {
    if (!state.complete[i]) {
      state.complete[i] = complete(chunk, i);
      all = all && state.complete[i];
    }
  }
  if (all) {
    state.open_from = state.next;
  }
  return all;
}

bool Engine::step(std::size_t chunk, const Wait& /*wait*/) { return messages_complete(chunk); }

bool Engine::step(std::size_t chunk, const Barrier& barrier) {
  ChunkState& state = chunks_[chunk];
  if (!state.arrived) {
    transport_.arrive(plan_.groups[barrier.group], chunk);
    state.arrived = true;
  }
  if (!transport_.arrived(plan_.groups[barrier.group], chunk)) {
    return false;
  }
  state.arrived = false;
  return true;
}

bool Engine::step(std::size_t chunk, const Sum& sum) {
  const ChunkState& state = chunks_[chunk];
  const Resolved& action = state.actions[state.next];
  for (simd::Sum& part : std::span(sums_).subspan(action.first_sum, action.sums)) {
    part.factor = sum.last ? factor_ : 1;
    loops_.sum(part);
  }
  return true;
}

bool Engine::is_reducing() const {
  const auto first = std::ranges::find(chunks_, false, &ChunkState::done);
  if (first == chunks_.end()) {
    return false;
  }
  const auto chunk = static_cast<std::size_t>(first - chunks_.begin());
  const auto left = std::span(plan_.chunks[chunk].actions).subspan(first->next);
  return std::ranges::any_of(
      left, [](const Action& action) { return std::holds_alternative<Sum>(action); });
}

std::optional<int> Engine::awaited_rank(std::size_t chunk) const {
  const ChunkState& state = chunks_[chunk];
  const std::vector<Action>& actions = plan_.chunks[chunk].actions;
  const Barrier* const barrier =
      state.next < actions.size() ? std::get_if<Barrier>(&actions[state.next]) : nullptr;
  if (barrier != nullptr) {
    for (const int rank : plan_.groups[barrier->group]) {
      if (!transport_.arrived({&rank, 1}, chunk)) {
        return rank;
      }
    }
  }
  for (std::size_t i = state.open_from; i < state.next; ++i) {
    if (const auto* const receive = std::get_if<Receive>(&actions[i]);
        receive != nullptr && !state.complete[i]) {
      return receive->from;
    }
    if (const auto* const send = std::get_if<Send>(&actions[i]);
        send != nullptr && !state.complete[i]) {
      return send->to;
    }
  }
  return std::nullopt;
}

int Engine::awaited_rank() const {
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    const std::optional<int> rank = chunks_[chunk].done ? std::nullopt : awaited_rank(chunk);
    if (rank) {
      return *rank;
    }
  }
  return transport_.rank();
}

}  // namespace cnn::allreduce
