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

// Looks up where the ranges of a plan lie.
class Engine::Resolver {
 public:
  Resolver(Engine& engine, std::span<const std::span<float>> buffer)
      : engine_(engine), buffer_(buffer), narrow_(engine.plan_.wire != Wire::f32) {}

  void resolve() {
    for (const Chunk& chunk : engine_.plan_.chunks) {
      Running running;
      narrowed_.clear();
      for (const Action& action : chunk.actions) {
        running.actions.push_back(std::visit([&](const auto& a) { return this->of(a); }, action));
      }
      running.complete.resize(chunk.actions.size());
      engine_.chunks_.push_back(std::move(running));
    }
    std::size_t operand = 0, output = 0;  // the tables have their final place now
    for (simd::Sum& sum : engine_.sums_) {
      sum.operands = &engine_.operands_[operand];
      sum.to = &engine_.outputs_[output];
      operand += sum.count;
      output += sum.outputs;
    }
  }

 private:
  struct Stretch {  // without a gap
    float* data;
    std::size_t first, n;  // elements of the range
  };
  std::vector<Stretch> stretches(const Range& range) const {
    std::vector<Stretch> result;
    std::size_t begin = 0;  // of the piece, in the buffer
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

  Pieces keep(std::span<const Bytes> pieces) {
    auto& all = engine_.pieces_;
    const Pieces result{static_cast<std::uint32_t>(all.size()),
                        static_cast<std::uint32_t>(pieces.size())};
    all.insert(all.end(), pieces.begin(), pieces.end());
    return result;
  }
  Pieces own(const Range& range) {
    std::vector<Bytes> pieces;
    for (const Stretch& s : stretches(range)) {
      pieces.push_back(std::as_writable_bytes(std::span(s.data, s.n)));
    }
    return keep(pieces);
  }
  Pieces wire(const Range& range, const Pieces& own) {
    if (!narrow_) {
      return own;
    }
    const Bytes place = engine_.wire_.subspan(2 * range.begin, 2 * range.size());
    return keep({&place, 1});
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
    if (receive.beside) {
      const std::size_t size = size_of(engine_.plan_.wire);
      const Bytes place =
          Bytes(engine_.scratch_).subspan(*receive.beside * size, receive.range.size() * size);
      result.to = keep({&place, 1});
    }
    return result;
  }
  Resolved of(const Wait& /*wait*/) {
    narrowed_.clear();
    return {};
  }
  static Resolved of(const Meet& /*meet*/) { return {}; }

  float* seen(int rank, float* own_place) const {
    if (rank == engine_.transport_.rank()) {
      return own_place;
    }
    std::byte* const place =
        engine_.transport_.in_sight(rank, reinterpret_cast<std::byte*>(own_place));
    check(place != nullptr, "an all-reduce needs the memory of rank " + std::to_string(rank) +
                                ", which is not in sight of rank " +
                                std::to_string(engine_.transport_.rank()));
    return reinterpret_cast<float*>(place);
  }
  simd::Operand operand(const Part& part, const Stretch& s) const {
    const std::size_t size = size_of(engine_.plan_.wire);
    switch (part.at) {
      case Part::At::own:
        break;
      case Part::At::beside:
        return {engine_.scratch_.data() + (part.where + s.first) * size,
                type_of(engine_.plan_.wire)};
      case Part::At::peer:
        return {seen(static_cast<int>(part.where), s.data), simd::Type::f32};
    }
    return {s.data, simd::Type::f32};
  }

  Resolved of(const Sum& sum) {
    Resolved result{.first_sum = static_cast<std::uint32_t>(engine_.sums_.size())};
    const std::vector<int> self{engine_.transport_.rank()};
    const std::vector<int>& into = sum.into ? engine_.plan_.groups[*sum.into] : self;
    for (const Stretch& s : stretches(sum.range)) {
      for (const Part& part : engine_.plan_.parts_of(sum)) {
        engine_.operands_.push_back(operand(part, s));
      }
      for (const int rank : into) {
        engine_.outputs_.push_back(seen(rank, s.data));
      }
      simd::Sum part;
      part.count = sum.parts;
      part.outputs = into.size();
      part.n = s.n;
      part.pairwise = sum.pairwise;
      part.round_to = sum.last ? type_of(engine_.plan_.wire) : simd::Type::f32;
      engine_.sums_.push_back(part);
      ++result.sums;
    }
    return result;
  }

  Engine& engine_;
  std::span<const std::span<float>> buffer_;
  bool narrow_;
  std::vector<Range> narrowed_;  // sent since the last wait
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
    wire_ = transport.room(elements * size_of(plan_.wire));
  }
  Resolver(*this, buffer).resolve();
}

void Engine::run(float factor) {
  factor_ = factor;
  for (Running& chunk : chunks_) {
    chunk.next = chunk.open_from = 0;
    chunk.came = chunk.done = false;
  }
  std::size_t first = 0;  // of those that are not done
  while (first < chunks_.size()) {
    bool got_on = false;
    for (std::size_t chunk = first; chunk < chunks_.size() && may_start(chunk); ++chunk) {
      got_on = advance(chunk) || got_on;
    }
    while (first < chunks_.size() && chunks_[first].done) {
      ++first;
    }
    if (got_on || first == chunks_.size()) {
      transport_.busy();
    } else {
      transport_.idle(blocked_by());
    }
  }
}

bool Engine::may_start(std::size_t chunk) const {
  return std::ranges::all_of(plan_.chunks[chunk].after,
                             [&](std::size_t earlier) { return chunks_[earlier].done; });
}

bool Engine::advance(std::size_t chunk) {
  Running& running = chunks_[chunk];
  const std::vector<Action>& actions = plan_.chunks[chunk].actions;
  bool got_on = false;
  while (!running.done) {
    if (running.next == actions.size()) {
      if (!messages_complete(chunk)) {
        return got_on;
      }
      running.done = true;
      return true;
    }
    if (!std::visit([&](const auto& action) { return step(chunk, action); },
                    actions[running.next])) {
      return got_on;
    }
    ++running.next;
    got_on = true;
  }
  return got_on;
}

bool Engine::step(std::size_t chunk, const Send& send) {
  Running& running = chunks_[chunk];
  const Resolved& action = running.actions[running.next];
  if (action.narrows) {
    std::byte* to = at(action.wire)[0].data();
    for (const Bytes& piece : at(action.own)) {
      const std::size_t n = piece.size() / sizeof(float);
      loops_.narrow(reinterpret_cast<const float*>(piece.data()),
                    reinterpret_cast<std::uint16_t*>(to), n, type_of(plan_.wire));
      to += 2 * n;
    }
  }
  running.complete[running.next] = false;
  transport_.send(send.to, chunk, at(action.wire));
  return true;
}

bool Engine::step(std::size_t chunk, const Receive& receive) {
  Running& running = chunks_[chunk];
  const Resolved& action = running.actions[running.next];
  running.complete[running.next] = false;
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
  if (plan_.wire != Wire::f32 && !receive->beside) {
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
  Running& running = chunks_[chunk];
  bool all = true;
  for (std::size_t i = running.open_from; i < running.next; ++i) {
    if (!running.complete[i]) {
      running.complete[i] = complete(chunk, i);
      all = all && running.complete[i];
    }
  }
  if (all) {
    running.open_from = running.next;
  }
  return all;
}

bool Engine::step(std::size_t chunk, const Wait& /*wait*/) { return messages_complete(chunk); }

bool Engine::step(std::size_t chunk, const Meet& meet) {
  Running& running = chunks_[chunk];
  if (!running.came) {
    transport_.come(plan_.groups[meet.group], chunk);
    running.came = true;
  }
  if (!transport_.have_come(plan_.groups[meet.group], chunk)) {
    return false;
  }
  running.came = false;
  return true;
}

bool Engine::step(std::size_t chunk, const Sum& sum) {
  const Running& running = chunks_[chunk];
  const Resolved& action = running.actions[running.next];
  for (simd::Sum& part : std::span(sums_).subspan(action.first_sum, action.sums)) {
    part.factor = sum.last ? factor_ : 1;
    loops_.sum(part);
  }
  return true;
}

bool Engine::has_sums_to_make() const {
  const auto first = std::ranges::find(chunks_, false, &Running::done);
  if (first == chunks_.end()) {
    return false;
  }
  const auto chunk = static_cast<std::size_t>(first - chunks_.begin());
  const auto left = std::span(plan_.chunks[chunk].actions).subspan(first->next);
  return std::ranges::any_of(
      left, [](const Action& action) { return std::holds_alternative<Sum>(action); });
}

std::optional<int> Engine::missing(std::size_t chunk) const {
  const Running& running = chunks_[chunk];
  const std::vector<Action>& actions = plan_.chunks[chunk].actions;
  const Meet* const meet =
      running.next < actions.size() ? std::get_if<Meet>(&actions[running.next]) : nullptr;
  if (meet != nullptr) {
    for (const int rank : plan_.groups[meet->group]) {
      if (!transport_.have_come({&rank, 1}, chunk)) {
        return rank;
      }
    }
  }
  for (std::size_t i = running.open_from; i < running.next; ++i) {
    if (const auto* const receive = std::get_if<Receive>(&actions[i]);
        receive != nullptr && !running.complete[i]) {
      return receive->from;
    }
    if (const auto* const send = std::get_if<Send>(&actions[i]);
        send != nullptr && !running.complete[i]) {
      return send->to;
    }
  }
  return std::nullopt;
}

int Engine::blocked_by() const {
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    const std::optional<int> rank = chunks_[chunk].done ? std::nullopt : missing(chunk);
    if (rank) {
      return *rank;
    }
  }
  return transport_.rank();
}

}  // namespace cnn::allreduce
