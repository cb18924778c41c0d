#include "allreduce/peer_memory.h"

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

#include "allreduce/board.h"
#include "allreduce/verdict_relay.h"
#include "allreduce/watched_process.h"

namespace cnn::allreduce {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds taken_away{100};  // longer than a processor that nobody wants
constexpr unsigned crowded_waits = 64;
// Ranks that are looked at in turn, every 2 ms of a wait: all of 1,024 ranks within 130 ms.
constexpr int most_looks = 16;
// Up to so many ranks each watches the processes of all others. With more it watches those of the
// neighbours that VerdictRelay names, and of whom it waits for: a descriptor for each pair of 1,024
// ranks would be a million of them.
constexpr int most_watched = 64;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

std::byte* map(int descriptor, std::size_t bytes) {
  const int kind = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE, descriptor, 0);
  check(memory != MAP_FAILED, "no memory for " + std::to_string(bytes >> 20U) +
                                  " MiB that ranks share: " + std::strerror(errno));
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // if the system likes
  return static_cast<std::byte*>(memory);
}

struct Incoming {  // posted and not yet received
  std::span<const Bytes> at_sender, to;
};

class PeerMemoryTransport final : public Transport {
 public:
  PeerMemoryTransport(std::byte* memory, int rank, bool processes, std::span<const int> called)
      : board_(memory),
        rank_(rank),
        ranks_(static_cast<int>(board_.dimensions().ranks)),
        channels_(board_.dimensions().channels),
        patience_(board_.dimensions().patience_ms),
        silence_(board_.dimensions().silence_ms),
        come_(channels_),
        incoming_(index(ranks_)),
        watched_(index(ranks_)),
        called_(called.begin(), called.end()) {
    Presence& mine = board_.presence(index(rank));
    mine.process.store(processes ? ::getpid() : 0, std::memory_order_relaxed);
    State before = State::absent;
    check(mine.state.compare_exchange_strong(before, State::here), name_of(rank) + " joins twice");
    const std::vector<int> neighbours = VerdictRelay(rank, ranks_).neighbours();
    for (int other = 0; other < ranks_; ++other) {
      while (presence(other).state.load(std::memory_order_acquire) == State::absent) {
        idle(other);
      }
      busy();
      ++joined_;
      if (ranks_ <= most_watched || std::ranges::binary_search(neighbours, other)) {
        watch(other);
      }
    }
  }
  ~PeerMemoryTransport() override { take_leave(State::left); }
  PeerMemoryTransport(const PeerMemoryTransport&) = delete;
  PeerMemoryTransport& operator=(const PeerMemoryTransport&) = delete;

  Progress* progress() override { return &presence(rank_).progress; }
  std::uint64_t progress_of(int rank) override {
    return presence(rank).progress.load(std::memory_order_relaxed);
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::size_t channels() const override { return channels_; }

  Bytes room(std::size_t bytes) override {
    const std::size_t whole = (bytes + 4095) / 4096 * 4096;
    check(whole <= board_.dimensions().room - used_,
          "ranks share " + std::to_string(board_.dimensions().room >> 20U) +
              " MiB each, too little for " + std::to_string((used_ + whole) >> 20U) + " MiB");
    const Bytes result(board_.room(index(rank_)) + used_, bytes);
    used_ += whole;
    return result;
  }

  std::byte* in_sight(int rank, std::byte* own) override {
    std::byte* const mine = board_.room(index(rank_));
    const bool shared = own >= mine && own < mine + used_;
    return shared ? board_.room(index(rank)) + (own - mine) : nullptr;
  }

  void send(int to, std::size_t channel, std::span<const Bytes> /*pieces*/) override {
    const std::uint64_t bit = Board::bit(channel);
    const auto before = board_.under_way(channel, index(rank_), index(to)).fetch_or(bit);
    check((before & bit) == 0,
          name_of(rank_) + " sends to " + name_of(to) + " before its last message was received");
    wake(to);
  }
  bool sent(int to, std::size_t channel) override {
    const auto open = board_.under_way(channel, index(rank_), index(to)).load();
    return (open & Board::bit(channel)) == 0;
  }

  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override {
    std::vector<Incoming>& of_sender = incoming_[index(from)];
    of_sender.resize(channels_);  // the first time
    of_sender[channel] = {at_sender, to};
  }
  bool received(int from, std::size_t channel) override {
    const std::uint64_t bit = Board::bit(channel);
    auto& open = board_.under_way(channel, index(from), index(rank_));
    if ((open.load() & bit) == 0) {
      return false;
    }
    copy(from, incoming_[index(from)][channel]);
    open.fetch_and(~bit);
    wake(from);
    return true;
  }

  void come(std::span<const int> group, std::size_t channel) override {
    board_.arrivals(channel, index(rank_)).store(++come_[channel]);
    for (const int rank : group) {
      wake(rank);
    }
  }
  bool have_come(std::span<const int> group, std::size_t channel) override {
    return std::ranges::all_of(group, [&](int rank) {
      return board_.arrivals(channel, index(rank)).load() >= come_[channel];
    });
  }

  // A short wait spins. A longer one gives the processor away; where somebody else takes it, that
  // is for a whole slice of time, so that then and in the next waits this rank sleeps until it is
  // woken.
  void idle(int waits_for) override {
    constexpr unsigned spins = 200;
    // The wait goes by time: where others use the processor, a yield may take as long as a time
    // slice.
    constexpr std::chrono::milliseconds between_looks{2};
    constexpr std::chrono::seconds longest{1};  // between two looks: else this rank was stopped
    if (idle_ == 0) {
      presence(rank_).waits_for.store(waits_for, std::memory_order_relaxed);
    }
    if (++idle_ < spins) {
      __builtin_ia32_pause();
      return;
    }
    const Clock::time_point before = Clock::now();
    if (crowded_ > 0) {
      sleep();
    } else {
      ::sched_yield();
    }
    const Clock::time_point now = Clock::now();
    if (crowded_ == 0 && now - before > taken_away) {
      crowded_ = crowded_waits;
    }
    if (idle_ == spins) {
      waited_ = {};
      looked_ = now;
    } else if (now - looked_ >= between_looks) {
      waited_ += std::min<Clock::duration>(now - looked_, longest);
      looked_ = now;
      presence(rank_).waits_for.store(waits_for, std::memory_order_relaxed);
      look_around(waits_for);
    }
  }
  void leave(std::optional<int> lost) override {
    const bool is_here = presence(rank_).state.load(std::memory_order_acquire) == State::here;
    if (lost && is_here) {  // else it has said already whom it blames
      presence(rank_).culprit.store(*lost, std::memory_order_relaxed);
    }
    take_leave(lost ? State::failed : State::left);
  }
  void busy() override {
    if (idle_ > 0) {
      if (listens_) {
        board_.doorbell(index(rank_)).sleeps.store(0);
        listens_ = false;
        --crowded_;
      }
      idle_ = 0;
      left_ = -1;
      presence(rank_).waits_for.store(-1, std::memory_order_relaxed);
    }
  }

 private:
  Presence& presence(int rank) const { return board_.presence(index(rank)); }

  void wake(int rank) {
    Doorbell& bell = board_.doorbell(index(rank));
    if (bell.sleeps.load() != 0) {
      bell.rings.fetch_add(1);
      ::syscall(SYS_futex, &bell.rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
  }
  // Listens first, so that who waits looks once more before it sleeps. Not for long: messages that
  // come on other ways ring no bell.
  // Many ranks sleep longer, or waking them would take all processors.
  void sleep() {
    constexpr long one = 200'000, most = 20'000'000;  // nanoseconds
    const timespec longest{0, std::clamp(one * ranks_ / 16, one, most)};
    Doorbell& bell = board_.doorbell(index(rank_));
    if (listens_) {
      ::syscall(SYS_futex, &bell.rings, FUTEX_WAIT, heard_, &longest, nullptr, 0);
    }
    heard_ = bell.rings.load();
    if (!listens_) {
      bell.sleeps.store(1);
      listens_ = true;
    }
  }

  void take_leave(State as) {
    State here = State::here;  // who failed has left already
    presence(rank_).state.compare_exchange_strong(here, as);
  }

  // Pieces may be cut in different places.
  void copy(int from, const Incoming& incoming) {
    std::size_t piece = 0, done = 0;
    for (const Bytes& to : incoming.to) {
      for (std::size_t filled = 0; filled < to.size();) {
        const Bytes& source = incoming.at_sender[piece];
        const std::size_t bytes = std::min(to.size() - filled, source.size() - done);
        const std::byte* const place = in_sight(from, source.data() + done);
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

  int number_of(int rank) const { return called_.empty() ? rank : called_[index(rank)]; }
  std::string name_of(int rank) const { return "rank " + std::to_string(number_of(rank)); }

  // culprit: its number.
  [[noreturn]] void lost(int culprit, const std::string& why) {
    presence(rank_).culprit.store(culprit, std::memory_order_relaxed);
    presence(rank_).state.store(State::failed, std::memory_order_release);
    throw PeerLost(culprit, lost_text(culprit) + why + " | seen by " + name_of(rank_));
  }

  void watch(int rank) {
    std::optional<WatchedProcess>& process = watched_[index(rank)];
    if (!process) {
      process.emplace(rank == rank_ ? 0 : presence(rank).process.load());
    }
  }

  // A rank that failed because of another is not to blame; nor is one that waits for another.
  void look_around(int waits_for) {
    for (int i = 0; i < std::min(joined_, most_looks); ++i) {
      look_at(next_look_++ % joined_);
    }
    if (waits_for != any_rank && waits_for < joined_) {
      watch(waits_for);
      look_at(waits_for);
    }
    if (waits_for != any_rank &&
        presence(waits_for).state.load(std::memory_order_acquire) == State::left) {
      if (left_ == waits_for) {  // else what is waited for may have come before it left
        lost(number_of(waits_for), "it has left");
      }
      left_ = waits_for;
      return;
    }
    left_ = -1;
    if (waited_ > patience_) {
      lost(waits_for == any_rank ? any_rank : number_of(root(waits_for)),
           "nothing from it for " + in_seconds(waited_));
    }
  }
  void look_at(int rank) {
    std::optional<WatchedProcess>& process = watched_[index(rank)];
    // First of all: who ends by itself has said before what it is.
    const bool ended = process && process->ended();
    const State state = presence(rank).state.load(std::memory_order_acquire);
    if (state == State::failed) {
      lost(presence(rank).culprit.load(std::memory_order_relaxed),
           name_of(rank) + " has given it up");
    }
    if (state == State::left) {
      return;
    }
    if (ended) {
      lost(number_of(rank), "process " + std::to_string(process->process()) + " has ended");
    }
    if (process && process->stopped() > silence_) {
      lost(number_of(rank), "process " + std::to_string(process->process()) +
                                " has been stopped for " + in_seconds(process->stopped()));
    }
  }
  int root(int rank) const {
    for (int steps = 0; steps < ranks_; ++steps) {
      const int next = presence(rank).waits_for.load(std::memory_order_relaxed);
      if (next < 0 || next == rank_) {
        break;
      }
      rank = next;
    }
    return rank;
  }

  Board board_;
  int rank_, ranks_;
  std::size_t channels_;
  std::chrono::milliseconds patience_, silence_;
  std::vector<std::uint64_t> come_;              // so far, by channel
  std::vector<std::vector<Incoming>> incoming_;  // [rank][channel]; empty: nothing came from it yet
  std::vector<std::optional<WatchedProcess>> watched_;  // by rank; nothing: it is not watched
  int joined_ = 0;           // ranks, from 0 on, that are known to be here
  std::vector<int> called_;  // see PeerMemory::join()
  std::size_t used_ = 0;     // of the room
  unsigned idle_ = 0;
  int next_look_ = 0;
  int left_ = -1;         // what was waited for at the latest look, and had left
  unsigned crowded_ = 0;  // waits that are still taken to have others on the processor
  bool listens_ = false;
  std::uint32_t heard_ = 0;  // rings
  Clock::time_point looked_;
  Clock::duration waited_{};
};

Dimensions dimensions(int ranks, const PeerMemoryOptions& options) {
  return {static_cast<std::uint64_t>(ranks), options.channels, options.room,
          static_cast<std::uint64_t>(options.patience.count()),
          static_cast<std::uint64_t>(options.silence.count())};
}

}  // namespace

PeerMemory PeerMemory::of_threads(int ranks, const PeerMemoryOptions& options) {
  const Dimensions of = dimensions(ranks, options);
  const std::size_t bytes = Board::bytes(of);
  PeerMemory memory(-1, map(-1, bytes), bytes);
  Board(memory.memory_).build(of);
  return memory;
}

PeerMemory PeerMemory::create(int ranks, const PeerMemoryOptions& options) {
  const Dimensions of = dimensions(ranks, options);
  const std::size_t bytes = Board::bytes(of);
  const int descriptor = ::memfd_create("cnn_ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Whoever made the file smaller would end all ranks by SIGBUS.
  check(descriptor >= 0 && ::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 &&
            ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0,
        std::string("no file in memory for ranks to share: ") + std::strerror(errno));
  PeerMemory memory(descriptor, map(descriptor, bytes), bytes);
  Board(memory.memory_).build(of);
  return memory;
}

PeerMemory PeerMemory::open(int descriptor) {
  struct stat file {};
  check(::fstat(descriptor, &file) == 0,
        std::string("the memory that ranks share cannot be opened: ") + std::strerror(errno));
  const auto bytes = static_cast<std::size_t>(file.st_size);
  return {descriptor, map(descriptor, bytes), bytes};
}

PeerMemory::PeerMemory(PeerMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_) {}

PeerMemory::~PeerMemory() {
  if (memory_ != nullptr) {
    ::munmap(memory_, bytes_);
  }
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

std::unique_ptr<Transport> PeerMemory::join(int rank, std::span<const int> called) {
  return std::make_unique<PeerMemoryTransport>(memory_, rank, descriptor_ >= 0, called);
}

}  // namespace cnn::allreduce
