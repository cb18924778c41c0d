#include "allreduce/mpi/world.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sched.h>
#include <sstream>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "allreduce/gathering.h"
#include "allreduce/mpi/transport.h"

namespace cnn::allreduce {
namespace {

constexpr int gather_tag = 1;
constexpr std::chrono::milliseconds longest_farewell{300};

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

// Strings [first, first + count) round and round, each behind its length.
std::string joined(std::span<const std::string> all, int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string& one = all[static_cast<std::size_t>(first + i) % all.size()];
    const std::uint64_t length = one.size();
    std::array<char, sizeof(length)> bytes{};
    std::memcpy(bytes.data(), &length, sizeof(length));
    text.append(bytes.data(), bytes.size()).append(one);
  }
  return text;
}

void part(std::string_view text, std::span<std::string> all, int first, int count) {
  for (int i = 0; i < count; ++i) {
    std::uint64_t length = 0;
    check(text.size() >= sizeof(length), "a message of ranks is cut off");
    std::memcpy(&length, text.data(), sizeof(length));
    text.remove_prefix(sizeof(length));
    all[static_cast<std::size_t>(first + i) % all.size()] = text.substr(0, length);
    text.remove_prefix(std::min<std::size_t>(length, text.size()));
  }
}

void check_set_up(int code) { check(code == MPI_SUCCESS, "MPI cannot start: " + error_text(code)); }

std::string name_of_space(const char* kind) {
  std::error_code ignored;
  return std::filesystem::read_symlink(kind, ignored).string();
}

// The facts that tell a rank how it can notice the end of another.
struct Whereabouts {
  int process = 0;
  std::string processes;  // equal for those that see one another's process numbers
  std::string network;    // equal for those that no cable connects

  static Whereabouts own() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return {.process = ::getpid(),
            .processes = boot + name_of_space("/proc/self/ns/pid"),
            .network = boot + name_of_space("/proc/self/ns/net")};
  }
  std::string text() const { return std::to_string(process) + " " + processes + " " + network; }
  static Whereabouts read(const std::string& text) {
    Whereabouts where;
    std::istringstream(text) >> where.process >> where.processes >> where.network;
    return where;
  }
};

// Above 64 KiB Open MPI first asks the receiver, over TCP, and the answer waits behind all that the
// receiver's own link has queued: a second of data, if sockets take as much as they like. Messages
// of up to 1 MiB go at once, and queues are short, unless the user has set otherwise.
void set_up_tcp() {
  constexpr const char* mebibyte = "1048576";
  for (const char* const name :
       {"OMPI_MCA_btl_tcp_eager_limit", "OMPI_MCA_btl_tcp_rndv_eager_limit",
        "OMPI_MCA_btl_tcp_max_send_size", "OMPI_MCA_btl_tcp_sndbuf"}) {
    ::setenv(name, mebibyte, /*overwrite=*/0);
  }
}

}  // namespace

MpiWorld::MpiWorld(const WorldOptions& options) : options_(options) {
  set_up_tcp();
  int provided = MPI_THREAD_SINGLE;
  {
    const CallDeadline deadline("MPI_Init", options_.start);
    check_set_up(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  }
  check(provided >= MPI_THREAD_SERIALIZED,
        "this MPI cannot be called by several threads in turn; use Open MPI 4 or newer");
  const CallDeadline deadline("MPI_Comm_dup", options_.start);
  check_set_up(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
  check_set_up(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  check_set_up(MPI_Comm_rank(comm_, &rank_));
  check_set_up(MPI_Comm_size(comm_, &ranks_));
  verdicts_.emplace(comm_, rank_, ranks_);
  watch();
}

// Watches a rank by its process where that can be seen, and by its signs of life where a cable is
// between.
void MpiWorld::watch() {
  const Whereabouts mine = Whereabouts::own();
  const std::vector<std::string> all = gather(mine.text());
  std::map<std::string, int> hosts;
  std::vector<int> host_of;
  for (int other = 0; other < ranks_; ++other) {
    const Whereabouts where = Whereabouts::read(all[static_cast<std::size_t>(other)]);
    const std::string name =
        options_.watches_processes ? where.processes + " " + where.network : std::to_string(other);
    host_of.push_back(hosts.try_emplace(name, static_cast<int>(hosts.size())).first->second);
    if (options_.watches_processes && where.processes == mine.processes && other != rank_) {
      near_.push_back({other, WatchedProcess(where.process)});
    }
  }
  if (ranks_ > 1) {
    heartbeats_.emplace(comm_, FailureDetector(host_of, rank_), mutex_, options_.between_beats,
                        [this] { take_verdicts(); });
  }
}

bool MpiWorld::take(int from, std::string& text, MPI_Request& request) {
  const auto turn = lock();
  int here = 0;
  MPI_Status status;
  check_call(MPI_Iprobe(from, gather_tag, comm_, &here, &status), from);
  if (here == 0) {
    return false;
  }
  int bytes = 0;
  check_call(MPI_Get_count(&status, MPI_CHAR, &bytes), from);
  text.resize(static_cast<std::size_t>(bytes));
  check_call(MPI_Irecv(text.data(), bytes, MPI_CHAR, from, gather_tag, comm_, &request), from);
  return true;
}

void MpiWorld::complete(MPI_Request& request, int other) {
  while (!test(request, other)) {
    idle(other);
  }
  busy();
}

bool MpiWorld::test(MPI_Request& request, int other) {
  const auto turn = lock();
  int done = 0;
  check_call(MPI_Test(&request, &done, MPI_STATUS_IGNORE), other);
  return done != 0;
}

std::vector<std::string> MpiWorld::gather(std::string_view mine) {
  std::vector<std::string> all(static_cast<std::size_t>(ranks_));
  all[static_cast<std::size_t>(rank_)] = mine;
  for (const GatherRound& round : gather_rounds(rank_, ranks_)) {
    outgoing_ = joined(all, round.sends, round.count);
    check(outgoing_.size() <= std::numeric_limits<int>::max(),
          "ranks tell one another more than 2 GiB at once");
    MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
    auto turn = lock();
    check_call(MPI_Isend(outgoing_.data(), static_cast<int>(outgoing_.size()), MPI_CHAR, round.to,
                         gather_tag, comm_, &send),
               round.to);
    turn.unlock();
    std::string text;
    while (!take(round.from, text, receive)) {
      idle(round.from);
    }
    busy();
    complete(receive, round.from);
    part(text, all, round.receives, round.count);
    complete(send, round.to);
  }
  return all;
}

std::unique_ptr<Transport> MpiWorld::connect(std::size_t channels) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const auto turn = lock();
    check_set_up(MPI_Comm_idup(comm_, &comm, &request));
  }
  complete(request, (rank_ + 1) % ranks_);  // not by MPI_Comm_dup, which does not miss a lost rank
  const auto turn = lock();
  check_set_up(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  return std::make_unique<MpiTransport>(*this, comm, channels);
}

void MpiWorld::all_reduce(std::span<float> values) {
  const auto turn = lock();
  check_set_up(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                             MPI_FLOAT, MPI_SUM, comm_));
}

void MpiWorld::check_call(int code, int other) {
  if (code == MPI_SUCCESS) {
    return;
  }
  if (!std::exchange(failing_, true)) {
    look_around();  // the call may have failed because of another, who is known by now
  }
  miss(other, "MPI: " + error_text(code));
}

void MpiWorld::miss(int other, const std::string& why) {
  lost(other, lost_text(other) + why + " | seen by rank " + std::to_string(rank_));
}

void MpiWorld::lost(int culprit, const std::string& what) {
  give_up(culprit, what);
  throw PeerLost(culprit, what);
}

// A wait gives the processor away. Where somebody else takes it, this rank sleeps between two
// looks, then and in the next waits: else it would take turns with the threads that compute.
void MpiWorld::idle(int waits_for) {
  constexpr std::chrono::microseconds taken_away{100};  // longer than a processor nobody wants
  constexpr std::chrono::microseconds nap{100};
  constexpr unsigned crowded_waits = 64;
  constexpr std::chrono::milliseconds between_looks{2};
  constexpr std::chrono::seconds longest{1};  // between two looks: else this rank was stopped
  const Clock::time_point before = Clock::now();
  if (crowded_ > 0) {
    std::this_thread::sleep_for(nap);
    slept_ = true;
  } else {
    ::sched_yield();
  }
  const Clock::time_point now = Clock::now();
  if (crowded_ == 0 && now - before > taken_away) {
    crowded_ = crowded_waits;
  }
  if (!std::exchange(idle_, true)) {
    waited_ = {};
    looked_ = now;
  }
  if (now - looked_ < between_looks) {
    return;
  }
  waited_ += std::min<Clock::duration>(now - looked_, longest);
  looked_ = now;
  if (heartbeats_) {
    heartbeats_->wait_for(waits_for);
  }
  look_around();
  if (waited_ > options_.patience) {
    const bool asks_for_root = heartbeats_ && waits_for != any_rank;
    miss(asks_for_root ? heartbeats_->root_of(waits_for) : waits_for,
         "nothing from it for " + in_seconds(waited_));
  }
}

// Each of two hosts whose link is cut names the other.
void MpiWorld::listen() {
  const FailureDetector::Silence silence =
      heartbeats_ ? heartbeats_->longest() : FailureDetector::Silence{};
  if (silence.rank >= 0 && silence.lasts > options_.silence) {
    miss(silence.rank, "no sign of life for " + in_seconds(silence.lasts));
  }
}

// Takes what others have said so far, also while this rank computes: it has to pass it on.
void MpiWorld::take_verdicts() {
  const auto turn = lock();
  if (over_) {
    return;
  }
  const std::optional<Verdict> verdict = verdicts_->take();
  if (verdict && (!heard_ || verdict->origin == 0)) {
    heard_ = verdict;
  }
}

// Throws if a rank has said that it gives up, and because of whom.
void MpiWorld::hear() {
  take_verdicts();
  if (const std::optional<Verdict> verdict = heard_) {
    end_calls();
    verdicts_->wait_until_sent(longest_farewell);
    throw PeerLost(verdict->culprit,
                   verdict->culprit == verdict->origin
                       ? "rank " + std::to_string(verdict->origin) + " is lost: " + verdict->why
                       : verdict->why);
  }
}

// A rank that has ended may have done so because of a verdict, which is on its way through others.
void MpiWorld::wait_for_last_words() {
  constexpr std::chrono::milliseconds longest{300};
  const Clock::time_point start = Clock::now();
  do {
    hear();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (Clock::now() - start < longest);
}

// A message of a rank comes before what its own end looks like.
void MpiWorld::look_around() {
  constexpr std::size_t most_looks = 16;  // at processes, in turn
  const auto turn = lock();
  hear();
  for (std::size_t looks = 0; looks < std::min(near_.size(), most_looks); ++looks) {
    auto& [other, process] = near_[next_look_++ % near_.size()];
    if (process.ended()) {
      wait_for_last_words();
      miss(other, "process " + std::to_string(process.process()) + " has ended");
    }
    if (process.stopped() > options_.silence) {
      miss(other, "process " + std::to_string(process.process()) + " has been stopped for " +
                      in_seconds(process.stopped()));
    }
  }
  listen();
}

void MpiWorld::end_calls() {
  over_ = true;
  if (heartbeats_) {
    heartbeats_->end();
  }
}

void MpiWorld::give_up(int culprit, std::string_view why) noexcept {
  try {
    const auto turn = lock();
    if (over_) {
      return;
    }
    end_calls();
    verdicts_->tell({.origin = rank_, .culprit = culprit, .why = std::string(why)});
    verdicts_->wait_until_sent(longest_farewell);
  } catch (const std::exception&) {  // no memory: others see that this process has ended
    return;
  }
}

void MpiWorld::watchful_all_reduce(std::span<float> values) {
  constexpr std::size_t most = std::size_t{1} << 30U;  // MPI counts in int
  while (!values.empty()) {
    const std::span<float> part = values.first(std::min(values.size(), most));
    MPI_Request request = MPI_REQUEST_NULL;
    auto turn = lock();
    check_call(MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT,
                              MPI_SUM, comm_, &request),
               any_rank);
    turn.unlock();
    complete(request, any_rank);
    values = values.subspan(part.size());
  }
}

// Messages of other ranks do not count: they may fail for the same reason.
bool MpiWorld::first_says(std::string_view why) noexcept {
  constexpr std::chrono::milliseconds most{500};
  try {
    const Clock::time_point start = Clock::now();
    while (rank_ > 0 && !over_ && Clock::now() - start < most) {
      const auto turn = lock();
      take_verdicts();
      if (heard_ && heard_->origin == 0) {
        return heard_->culprit == 0 && heard_->why == why;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (const std::exception&) {  // no memory, or rank 0 is lost: then it does not say so
    return false;
  }
  return false;
}

void MpiWorld::finish() {
  gather({});
  if (heartbeats_) {
    heartbeats_->stop();
  }
  const auto turn = lock();
  const CallDeadline deadline("MPI_Finalize", options_.start);
  MPI_Finalize();
}

}  // namespace cnn::allreduce
