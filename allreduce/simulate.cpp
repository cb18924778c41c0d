#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allreduce/cost.h"
#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

// A resource that serves one request after another at a given speed: a link direction, a processor.
struct Line {
  double speed = 1;
  double free = 0;  // the time from which on it is idle

  double serve(double from, double bytes) {
    free = std::max(from, free) + bytes / speed;
    return free;
  }
};

// The progress of one chunk of one rank.
struct ChunkProgress {
  std::size_t next = 0;
  std::size_t open_messages = 0;
  std::size_t chunks_to_wait_for = 0;
  std::size_t barriers = 0;
  double time = 0;  // the end of its latest wait
  bool done = false;
};

struct Message {
  std::size_t from = 0, to = 0, chunk = 0;
  std::size_t place = 0;  // index among the sends of its rank, which start in this order
  double bytes = 0;
  bool inside = false;                   // it stays within a host
  double last_byte = 0;                  // when it arrives, if the receiver's link is idle
  std::optional<double> sent, expected;  // the time at which each side posted it
};

// The kinds of events; at equal times they come in this order.
enum class Kind : std::uint8_t { go_on, set_out, arrive };
struct Event {
  double time;
  std::size_t number;  // orders events of the same time and kind
  Kind kind;
  std::size_t rank, chunk;  // for go_on
  Message message;

  bool operator<(
      const Event& other) const {  // inverted, as the top of a priority queue is the largest
    return std::tie(time, kind, number) > std::tie(other.time, other.kind, other.number);
  }
};

class Simulation {
 public:
  // plans: those of all ranks, or those of the representatives of a symmetry; symmetry: may be
  // null.
  Simulation(std::span<const RankPlan> plans, const Topology& topology, const Links& links,
             const Symmetry* symmetry, double size_scale)
      : plans_(plans),
        topology_(topology),
        links_(links),
        symmetry_(symmetry),
        size_scale_(size_scale),
        chunks_(plans.front().chunks.size()) {
    const int hosts = *std::ranges::max_element(topology.host_of) + 1;
    processors_.resize(plans.size());
    sent_by_.resize(plans.size());
    ranks_.resize(plans.size());
    hosts_.resize(static_cast<std::size_t>(hosts), {Line{}, Line{}});
    for (std::size_t rank = plans.size();
         rank-- > 0;) {  // whether it stays within a host's first rank comes last
      const double factor = topology.link.empty() ? 1 : topology.link[rank];
      ranks_[rank] = {Line{links.rank * factor}, Line{links.rank * factor}};
      hosts_[host_of(rank)] = {Line{links.host * factor}, Line{links.host * factor}};
    }
  }

  double run() {
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      chunk_progress_.emplace_back(chunks_);
      for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
        chunk_progress_[rank][chunk].chunks_to_wait_for = plans_[rank].chunks[chunk].after.size();
        schedule_go_on(0, rank, chunk);
      }
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      handle(event);
    }
    double end = 0;
    for (const std::vector<ChunkProgress>& of_rank : chunk_progress_) {
      for (const ChunkProgress& progress : of_rank) {
        check(progress.done, "an all-reduce never ends: what a rank waits for does not come");
        end = std::max(end, progress.time);
      }
    }
    return end;
  }

 private:
  // Full duplex: sends and receives at the same time.
  struct Port {
    Line out, in;
  };

  std::size_t host_of(std::size_t rank) const {
    return static_cast<std::size_t>(topology_.host_of[rank]);
  }
  Port& port(std::size_t rank, bool inside) {
    return inside ? ranks_[rank] : hosts_[host_of(rank)];
  }
  std::size_t representative(std::size_t rank) const {
    return symmetry_ == nullptr
               ? rank
               : static_cast<std::size_t>(symmetry_->representative(static_cast<int>(rank)));
  }
  // The symmetry lets a message to `to` stand for one to this rank from the representative of
  // `from`.
  std::size_t moved(std::size_t from, std::size_t to) const {
    return symmetry_ == nullptr ? to
                                : static_cast<std::size_t>(symmetry_->moved(static_cast<int>(from),
                                                                            static_cast<int>(to)));
  }

  void schedule_go_on(double time, std::size_t rank, std::size_t chunk) {
    events_.push({time, number_++, Kind::go_on, rank, chunk, {}});
  }

  void handle(const Event& event) {
    const Message& m = event.message;
    if (event.kind == Kind::go_on) {
      rank_ = event.rank;
      chunk_ = event.chunk;
      progress().time = std::max(progress().time, event.time);
      advance();
    } else if (event.kind == Kind::set_out) {
      Line& line = port(m.from, m.inside).out;
      const double start = std::max(event.time, line.free);
      Message coming = m;
      coming.last_byte = line.serve(start, m.bytes) + links_.latency;
      events_.push({start + links_.latency, number_++, Kind::arrive, 0, 0, coming});
      end_side(line.free, m.from, m.chunk);
    } else {
      const double served = port(m.to, m.inside).in.serve(event.time, m.bytes);
      end_side(std::max(served, m.last_byte), m.to, m.chunk);
    }
  }

  void end_side(double time, std::size_t rank, std::size_t chunk) {
    ChunkProgress& progress = chunk_progress_[rank][chunk];
    progress.time = std::max(progress.time, time);
    if (--progress.open_messages == 0) {
      schedule_go_on(progress.time, rank, chunk);
    }
  }

  ChunkProgress& progress() { return chunk_progress_[rank_][chunk_]; }

  void advance() {
    const Chunk& chunk = plans_[rank_].chunks[chunk_];
    while (progress().chunks_to_wait_for == 0 && !progress().done) {
      if (progress().next == chunk.actions.size()) {
        if (progress().open_messages == 0) {
          end_chunk();
        }
        return;
      }
      if (!std::visit([this](const auto& action) { return step(action); },
                      chunk.actions[progress().next])) {
        return;
      }
      ++progress().next;
    }
  }

  void end_chunk() {
    progress().done = true;
    for (std::size_t later = chunk_ + 1; later < chunks_; ++later) {
      const auto& after = plans_[rank_].chunks[later].after;
      if (const auto times = std::ranges::count(after, chunk_); times > 0) {
        chunk_progress_[rank_][later].chunks_to_wait_for -= static_cast<std::size_t>(times);
        schedule_go_on(progress().time, rank_, later);
      }
    }
  }

  double use_processor(double seconds) {
    return processors_[rank_].serve(progress().time, seconds);
  }

  // A message within a host is a copy: from another NUMA node it is no faster than memory there.
  double slowdown(std::size_t from, std::size_t to) const {
    const bool across_nodes = host_of(from) == host_of(to) &&
                              !topology_.same_node(static_cast<int>(from), static_cast<int>(to));
    return across_nodes && links_.remote_memory ? std::max(1.0, links_.rank / *links_.remote_memory)
                                                : 1;
  }

  void post(std::size_t from, std::size_t to, const Range& range) {
    const double now = use_processor(links_.post);
    const std::size_t ranks = topology_.host_of.size(), sender = representative(from);
    Message& m = mail_[(chunk_ * ranks + sender) * ranks + moved(from, to)];
    (from == rank_ ? m.sent : m.expected) = now;
    if (from == rank_) {
      m.place = sent_by_[rank_]++;
    }
    ++progress().open_messages;
    if (m.sent && m.expected) {
      const double bytes = size_scale_ * slowdown(from, to) *
                           static_cast<double>(range.size() * size_of(plans_[rank_].wire));
      const Message whole{.from = sender,
                          .to = representative(to),
                          .chunk = chunk_,
                          .place = m.place,
                          .bytes = bytes,
                          .inside = host_of(from) == host_of(to)};
      events_.push({std::max(*m.sent, *m.expected), m.place, Kind::set_out, 0, 0, whole});
      m = {};
    }
  }
  bool step(const Send& send) {
    post(rank_, static_cast<std::size_t>(send.to), send.range);
    return true;
  }
  bool step(const Receive& receive) {
    post(static_cast<std::size_t>(receive.from), rank_, receive.range);
    return true;
  }
  bool step(const Wait& /*wait*/) { return progress().open_messages == 0; }

  bool step(const Barrier& barrier) {
    const std::vector<int>& group = plans_[rank_].groups[barrier.group];
    // A chunk that waits here has counted itself; the last to arrive wakes the others.
    const std::size_t mine = progress().barriers;
    if (woken_[{rank_, chunk_}] == mine + 1) {
      ++progress().barriers;
      return true;
    }
    arrivals_[{rank_, chunk_}] = mine + 1;
    for (const int rank : group) {
      if (arrivals_[{static_cast<std::size_t>(rank), chunk_}] < mine + 1) {
        return false;
      }
    }
    double latest = 0;
    for (const int rank : group) {
      latest = std::max(latest, chunk_progress_[static_cast<std::size_t>(rank)][chunk_].time);
    }
    for (const int rank : group) {
      woken_[{static_cast<std::size_t>(rank), chunk_}] = mine + 1;
      schedule_go_on(latest + links_.barrier.value_or(links_.latency),
                     static_cast<std::size_t>(rank), chunk_);
    }
    return false;
  }

  // Returns the time of all reads and writes of a sum over the memory of peers.
  double seconds_per_byte(const Sum& sum) const {
    const RankPlan& plan = plans_[rank_];
    const int self = static_cast<int>(rank_);
    std::size_t near = 0, remote = 0;
    const auto count = [&](int owner) { ++(topology_.same_node(self, owner) ? near : remote); };
    for (const Operand& part : plan.operands_of(sum)) {
      count(part.source == Operand::Source::peer_buffer ? static_cast<int>(part.index) : self);
    }
    if (sum.into) {
      std::ranges::for_each(plan.groups[*sum.into], count);
    } else {
      ++near;
    }
    return static_cast<double>(near) / links_.memory +
           static_cast<double>(remote) / links_.remote_memory.value_or(links_.memory);
  }

  bool step(const Sum& sum) {
    const double bytes = size_scale_ * static_cast<double>(sum.range.size() * sizeof(float));
    double seconds = (sum.operand_count - 1) * bytes * links_.add;
    const auto parts = plans_[rank_].operands_of(sum);
    const bool of_others = std::ranges::any_of(
        parts, [](const Operand& part) { return part.source == Operand::Source::peer_buffer; });
    if (of_others || sum.into) {  // memory bandwidth limits it
      seconds = bytes * seconds_per_byte(sum);
    }
    progress().time = use_processor(seconds);
    return true;
  }

  std::span<const RankPlan> plans_;
  const Topology& topology_;
  const Links& links_;
  const Symmetry* symmetry_;
  double size_scale_;
  std::size_t chunks_;
  std::vector<Line> processors_;  // by rank; their requests are in seconds
  std::vector<Port> ranks_, hosts_;
  std::vector<std::vector<ChunkProgress>> chunk_progress_;  // [rank][chunk]
  std::unordered_map<std::size_t, Message> mail_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> arrivals_, woken_;  // at barriers
  std::vector<std::size_t> sent_by_;  // by rank: the number of messages
  std::priority_queue<Event> events_;
  std::size_t number_ = 0;
  std::size_t rank_ = 0, chunk_ = 0;  // the current chunk
};

}  // namespace

double simulate(std::span<const RankPlan> plans, const Topology& topology, const Links& links) {
  return plans.size() < 2 ? 0 : Simulation(plans, topology, links, nullptr, 1).run();
}

double simulate(std::span<const RankPlan> plans, const Topology& topology, const Links& links,
                const Symmetry& symmetry, double size_scale) {
  check(std::ssize(plans) == symmetry.representatives(),
        "a simulation by symmetry needs the plans of host 0, and of no other");
  return topology.ranks() < 2 ? 0 : Simulation(plans, topology, links, &symmetry, size_scale).run();
}

}  // namespace cnn::allreduce
