#include "allreduce/shared_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <optional>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "allreduce/abort_gossip.h"
#include "allreduce/shared_header.h"
#include "allreduce/watched_process.h"

namespace cnn::allreduce {
namespace {

using Clock = std::chrono::steady_clock;

// A sched_yield() longer than this has given the processor to another thread.
constexpr std::chrono::microseconds contended_yield{100};
// After such a yield this many waits sleep on the doorbell instead of yielding.
constexpr unsigned contention_memory = 64;
// The peers that are checked in one round, every 2 ms of a wait: all of 1,024 ranks in 130 ms.
constexpr int checks_per_round = 16;
// Up to this many ranks each watches the processes of all others. With more ranks, each watches
// the neighbours that AbortGossip names and the rank that it waits for, because a descriptor for
// each pair of 1,024 ranks would make a million of them.
constexpr int max_watched = 64;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

std::byte* map(int descriptor, std::size_t bytes) {
  const int kind = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE, descriptor, 0);
  check(memory != MAP_FAILED, "no memory for " + std::to_string(bytes >> 20U) +
                                  " MiB that ranks share: " + std::strerror(errno));
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // A hint: failure does no harm.
  return static_cast<std::byte*>(memory);
}

// A receive that was posted and is not complete.
struct Incoming {
  std::span<const Bytes> at_sender, to;
};

// Transfers a message by a copy out of the sender's segment, which the receiver makes.
class SharedMemoryTransport final : public Transport {
 public:
  SharedMemoryTransport(std::byte* memory, int rank, bool processes,
                        std::span<const int> global_ranks)
      : header_(memory),
        rank_(rank),
        ranks_(static_cast<int>(header_.parameters().ranks)),
        channels_(header_.parameters().channels),
        wait_timeout_(header_.parameters().wait_timeout_ms),
        heartbeat_timeout_(header_.parameters().heartbeat_timeout_ms),
        barriers_(channels_),
        incoming_(index(ranks_)),
        watched_(index(ranks_)),
        global_ranks_(global_ranks.begin(), global_ranks.end()) {
    RankStatus& mine = header_.status(index(rank));
    mine.process.store(processes ? ::getpid() : 0, std::memory_order_relaxed);
    RankState before = RankState::absent;
    check(mine.state.compare_exchange_strong(before, RankState::joined),
          name_of(rank) + " joins twice");
    const std::vector<int> neighbours = AbortGossip(rank, ranks_).neighbours();
    for (int other = 0; other < ranks_; ++other) {
      while (status(other).state.load(std::memory_order_acquire) == RankState::absent) {
        idle(other);
      }
      busy();
      ++joined_;
      if (ranks_ <= max_watched || std::ranges::binary_search(neighbours, other)) {
        watch(other);
      }
    }
  }
  ~SharedMemoryTransport() override { end_as(RankState::left); }
  SharedMemoryTransport(const SharedMemoryTransport&) = delete;
  SharedMemoryTransport& operator=(const SharedMemoryTransport&) = delete;

  Progress* progress() override { return &status(rank_).progress; }
  std::uint64_t progress_of(int rank) override {
    return status(rank).progress.load(std::memory_order_relaxed);
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::size_t channels() const override { return channels_; }

  Bytes allocate_shared(std::size_t bytes) override {
    const std::size_t whole = (bytes + 4095) / 4096 * 4096;
    check(whole <= header_.parameters().segment_bytes - used_,
          "ranks share " + std::to_string(header_.parameters().segment_bytes >> 20U) +
              " MiB each, too little for " + std::to_string((used_ + whole) >> 20U) + " MiB");
    const Bytes result(header_.segment(index(rank_)) + used_, bytes);
    used_ += whole;
    return result;
  }

  std::byte* peer_address(int rank, std::byte* own) override {
    std::byte* const mine = header_.segment(index(rank_));
    const bool shared = own >= mine && own < mine + used_;
    return shared ? header_.segment(index(rank)) + (own - mine) : nullptr;
  }

  void send(int to, std::size_t channel, std::span<const Bytes> /*pieces*/) override {
    const std::uint64_t bit = SharedHeader::bit(channel);
    const auto before = header_.pending(channel, index(rank_), index(to)).fetch_or(bit);
    if ((before & bit) != 0) {  // check() would build the text for every message
      throw Error(name_of(rank_) + " sends to " + name_of(to) +
                  " before its last message was received");
    }
    wake(to);
  }
  bool sent(int to, std::size_t channel) override {
    const auto open = header_.pending(channel, index(rank_), index(to)).load();
    return (open & SharedHeader::bit(channel)) == 0;
  }

  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override {
    std::vector<Incoming>& of_sender = incoming_[index(from)];
    of_sender.resize(channels_);  // changes the size the first time only
    of_sender[channel] = {at_sender, to};
  }
  bool received(int from, std::size_t channel) override {
    const std::uint64_t bit = SharedHeader::bit(channel);
    auto& open = header_.pending(channel, index(from), index(rank_));
    if ((open.load() & bit) == 0) {
      return false;
    }
    copy(from, incoming_[index(from)][channel]);
    open.fetch_and(~bit);
    wake(from);
    return true;
  }

  void arrive(std::span<const int> group, std::size_t channel) override {
    header_.arrivals(channel, index(rank_)).store(++barriers_[channel]);
    for (const int rank : group) {
      wake(rank);
    }
  }
  bool arrived(std::span<const int> group, std::size_t channel) override {
    return std::ranges::all_of(group, [&](int rank) {
      return header_.arrivals(channel, index(rank)).load() >= barriers_[channel];
    });
  }

  // Backs off in three stages: a short wait spins, a longer one yields the processor. If another
  // thread then runs, it keeps the processor for a whole time slice; this wait and the next ones
  // sleep on the doorbell until a peer rings it.
  void idle(int waits_for) override {
    constexpr unsigned spins = 200;
    // Checks go by time and not by rounds, as a yield may take as long as a time slice.
    constexpr std::chrono::milliseconds check_interval{2};
    // A longer time between two checks means that this process was stopped: it counts as one gap.
    constexpr std::chrono::seconds longest_gap{1};
    if (idle_rounds_ == 0) {
      status(rank_).waits_for.store(waits_for, std::memory_order_relaxed);
    }
    if (++idle_rounds_ < spins) {
      __builtin_ia32_pause();
      return;
    }
    const Clock::time_point before = Clock::now();
    if (contended_waits_ > 0) {
      sleep();
    } else {
      ::sched_yield();
    }
    const Clock::time_point now = Clock::now();
    if (contended_waits_ == 0 && now - before > contended_yield) {
      contended_waits_ = contention_memory;
    }
    if (idle_rounds_ == spins) {
      waited_ = {};
      last_check_ = now;
    } else if (now - last_check_ >= check_interval) {
      waited_ += std::min<Clock::duration>(now - last_check_, longest_gap);
      last_check_ = now;
      status(rank_).waits_for.store(waits_for, std::memory_order_relaxed);
      check_peers(waits_for);
    }
  }
  void leave(std::optional<int> lost) override {
    const bool is_joined = status(rank_).state.load(std::memory_order_acquire) == RankState::joined;
    if (lost && is_joined) {  // otherwise it has named the culprit before
      status(rank_).culprit.store(*lost, std::memory_order_relaxed);
    }
    end_as(lost ? RankState::failed : RankState::left);
  }
  void busy() override {
    if (idle_rounds_ > 0) {
      if (registered_) {
        header_.doorbell(index(rank_)).sleeping.store(0);
        registered_ = false;
        --contended_waits_;
      }
      idle_rounds_ = 0;
      seen_left_ = -1;
      status(rank_).waits_for.store(-1, std::memory_order_relaxed);
    }
  }

 private:
  RankStatus& status(int rank) const { return header_.status(index(rank)); }

  void wake(int rank) {
    Doorbell& bell = header_.doorbell(index(rank));
    if (bell.sleeping.load() != 0) {
      bell.rings.fetch_add(1);
      ::syscall(SYS_futex, &bell.rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
  }
  // Sleeps until the doorbell rings. The first call only registers as a sleeper: the caller polls
  // once more before it sleeps, so that no ring is missed. The sleep is short, because messages of
  // other transports ring no bell; with many ranks it is longer, as waking all of them often would
  // take all processors.
  void sleep() {
    constexpr long shortest = 200'000, most = 20'000'000;  // nanoseconds
    const timespec longest{0, std::clamp(shortest * ranks_ / 16, shortest, most)};
    Doorbell& bell = header_.doorbell(index(rank_));
    if (registered_) {
      ::syscall(SYS_futex, &bell.rings, FUTEX_WAIT, rings_seen_, &longest, nullptr, 0);
    }
    rings_seen_ = bell.rings.load();
    if (!registered_) {
      bell.sleeping.store(1);
      registered_ = true;
    }
  }

  void end_as(RankState as) {
    RankState before = RankState::joined;  // A rank that has failed keeps that state.
    status(rank_).state.compare_exchange_strong(before, as);
  }

  // Copies a message out of the sender's segment. Sender and receiver may cut it into different
  // pieces.
  void copy(int from, const Incoming& incoming) {
    std::size_t piece = 0, done = 0;
    for (const Bytes& to : incoming.to) {
      for (std::size_t filled = 0; filled < to.size();) {
        const Bytes& source = incoming.at_sender[piece];
        const std::size_t bytes = std::min(to.size() - filled, source.size() - done);
        const std::byte* const place = peer_address(from, source.data() + done);
        check(place != nullptr, "a message between ranks does not lie in memory that they share");
        std::memcpy(to.data() + filled, place, bytes);
        filled += bytes;
        done += bytes;
        if (done == source.size()) {
          ++piece;
          done = 0;
        }
      }
    }
  }

  int global_rank(int rank) const {
    return global_ranks_.empty() ? rank : global_ranks_[index(rank)];
  }
  std::string name_of(int rank) const { return "rank " + std::to_string(global_rank(rank)); }

  // Marks this rank as failed and throws. culprit: a global rank.
  [[noreturn]] void lost(int culprit, const std::string& why,
                         PeerLost::Source source = PeerLost::Source::observed) {
    status(rank_).culprit.store(culprit, std::memory_order_relaxed);
    status(rank_).state.store(RankState::failed, std::memory_order_release);
    throw PeerLost(culprit, lost_text(culprit) + why + " | seen by " + name_of(rank_), source);
  }

  void watch(int rank) {
    std::optional<WatchedProcess>& process = watched_[index(rank)];
    if (!process) {
      process.emplace(rank == rank_ ? 0 : status(rank).process.load());
    }
  }

  // Throws PeerLost if a peer has failed or the wait has timed out. Blame follows the culprits that
  // failed ranks name and the ranks that others wait for.
  void check_peers(int waits_for) {
    for (int i = 0; i < std::min(joined_, checks_per_round); ++i) {
      check_peer(next_check_++ % joined_);
    }
    if (waits_for != any_rank && waits_for < joined_) {
      watch(waits_for);
      check_peer(waits_for);
    }
    if (waits_for != any_rank &&
        status(waits_for).state.load(std::memory_order_acquire) == RankState::left) {
      if (seen_left_ == waits_for) {  // at first sight, its last message may still be there
        lost(global_rank(waits_for), "it has left");
      }
      seen_left_ = waits_for;
      return;
    }
    seen_left_ = -1;
    if (waited_ > wait_timeout_) {
      lost(waits_for == any_rank ? any_rank : global_rank(root(waits_for)),
           "nothing from it for " + seconds_text(waited_));
    }
  }
  void check_peer(int rank) {
    std::optional<WatchedProcess>& process = watched_[index(rank)];
    // This order matters: a process that ends by itself has stored its state before.
    const bool ended = process && process->ended();
    const RankState state = status(rank).state.load(std::memory_order_acquire);
    if (state == RankState::failed) {
      lost(status(rank).culprit.load(std::memory_order_relaxed), name_of(rank) + " has given it up",
           PeerLost::Source::told);
    }
    if (state == RankState::left) {
      return;
    }
    if (ended) {
      lost(global_rank(rank), "process " + std::to_string(process->process()) + " has ended");
    }
    if (process && process->stopped() > heartbeat_timeout_) {
      lost(global_rank(rank), "process " + std::to_string(process->process()) +
                                  " has been stopped for " + seconds_text(process->stopped()));
    }
  }
  // Returns the end of the chain of ranks that wait for one another, beginning with this one.
  int root(int rank) const {
    for (int steps = 0; steps < ranks_; ++steps) {
      const int next = status(rank).waits_for.load(std::memory_order_relaxed);
      if (next < 0 || next == rank_) {
        break;
      }
      rank = next;
    }
    return rank;
  }

  SharedHeader header_;
  int rank_, ranks_;
  std::size_t channels_;
  std::chrono::milliseconds wait_timeout_, heartbeat_timeout_;
  std::vector<std::uint64_t> barriers_;          // by channel: barriers at which it has arrived
  std::vector<std::vector<Incoming>> incoming_;  // [rank][channel]; empty: nothing was posted yet
  std::vector<std::optional<WatchedProcess>> watched_;  // by rank
  int joined_ = 0;                 // The ranks [0, joined_) are known to have joined.
  std::vector<int> global_ranks_;  // see SharedMemory::join()
  std::size_t used_ = 0;           // bytes of the segment that are allocated
  unsigned idle_rounds_ = 0;       // in this wait
  int next_check_ = 0;
  int seen_left_ = -1;            // the awaited rank, if it had left at the latest check
  unsigned contended_waits_ = 0;  // how many further waits sleep instead of yielding
  bool registered_ = false;       // as a sleeper on the doorbell
  std::uint32_t rings_seen_ = 0;
  Clock::time_point last_check_;
  Clock::duration waited_{};
};

SharedParameters parameters(int ranks, const SharedMemoryOptions& options) {
  return {static_cast<std::uint64_t>(ranks), options.channels, options.segment_bytes,
          static_cast<std::uint64_t>(options.wait_timeout.count()),
          static_cast<std::uint64_t>(options.heartbeat_timeout.count())};
}

}  // namespace

SharedMemory SharedMemory::for_threads(int ranks, const SharedMemoryOptions& options) {
  const SharedParameters shared_parameters = parameters(ranks, options);
  const std::size_t bytes = SharedHeader::total_bytes(shared_parameters);
  SharedMemory memory(-1, map(-1, bytes), bytes);
  SharedHeader(memory.memory_).construct(shared_parameters);
  return memory;
}

SharedMemory SharedMemory::create(int ranks, const SharedMemoryOptions& options) {
  const SharedParameters shared_parameters = parameters(ranks, options);
  const std::size_t bytes = SharedHeader::total_bytes(shared_parameters);
  const int descriptor = ::memfd_create("cnn_ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Seals, because a process that shrinks the file would kill all ranks by SIGBUS.
  check(descriptor >= 0 && ::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 &&
            ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0,
        std::string("no file in memory for ranks to share: ") + std::strerror(errno));
  SharedMemory memory(descriptor, map(descriptor, bytes), bytes);
  SharedHeader(memory.memory_).construct(shared_parameters);
  return memory;
}

SharedMemory SharedMemory::open(int descriptor) {
  struct stat file {};
  check(::fstat(descriptor, &file) == 0,
        std::string("the memory that ranks share cannot be opened: ") + std::strerror(errno));
  const auto bytes = static_cast<std::size_t>(file.st_size);
  return {descriptor, map(descriptor, bytes), bytes};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_) {}

SharedMemory::~SharedMemory() {
  if (memory_ != nullptr) {
    ::munmap(memory_, bytes_);
  }
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

std::unique_ptr<Transport> SharedMemory::join(int rank, std::span<const int> global_ranks) {
  return std::make_unique<SharedMemoryTransport>(memory_, rank, descriptor_ >= 0, global_ranks);
}

}  // namespace cnn::allreduce
