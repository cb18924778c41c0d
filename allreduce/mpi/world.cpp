#include "allreduce/mpi/world.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sched.h>
#include <system_error>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "allreduce/all_gather.h"
#include "allreduce/mpi/help_messages.h"
#include "allreduce/mpi/in_parts.h"
#include "allreduce/mpi/transport.h"
#include "allreduce/repeated_all_gather.h"
#include "allreduce/serialization.h"

namespace cnn::allreduce {
namespace {

constexpr int gather_tag = 1;
constexpr std::size_t max_count = std::size_t{1} << 30U;  // elements of a call: MPI counts in int
constexpr std::chrono::milliseconds farewell_timeout{300};

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

// Serialises the strings first, first + 1, ..., modulo their number.
std::string joined(std::span<const std::string> all, int first, int count) {
  ByteWriter writer;
  for (int i = 0; i < count; ++i) {
    writer.put(all[static_cast<std::size_t>(first + i) % all.size()]);
  }
  return std::move(writer).take();
}

// Inverse of joined(). Throws Error if the length does not match.
void split(std::string_view bytes, std::span<std::string> all, int first, int count) {
  ByteReader reader(bytes);
  for (int i = 0; i < count; ++i) {
    reader.get(all[static_cast<std::size_t>(first + i) % all.size()]);
  }
  reader.finish();
}

void check_set_up(int code) { check(code == MPI_SUCCESS, "MPI cannot start: " + error_text(code)); }

std::string name_of_space(const char* kind) {
  std::error_code ignored;
  return std::filesystem::read_symlink(kind, ignored).string();
}

// The facts that decide how a rank watches another.
struct ProcessIdentity {
  int process = 0;
  std::string processes;  // equal for ranks that share a PID namespace
  std::string network;    // equal for ranks that share a network namespace: no cable in between

  static ProcessIdentity own() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return {.process = ::getpid(),
            .processes = boot + name_of_space("/proc/self/ns/pid"),
            .network = boot + name_of_space("/proc/self/ns/net")};
  }
  static auto fields(auto& self) { return std::tie(self.process, self.processes, self.network); }
};

// Makes Open MPI send messages of up to 1 MiB eagerly over TCP and keep its socket buffers short,
// unless the user has set these parameters. By default messages above 64 KiB use a rendezvous,
// whose answer waits behind everything that the receiver has queued: up to a second of data.
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
  report_problems_without_waiting();
  const CallDeadline deadline("MPI_Comm_dup", options_.start);
  check_set_up(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
  check_set_up(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  check_set_up(MPI_Comm_rank(comm_, &rank_));
  check_set_up(MPI_Comm_size(comm_, &ranks_));
  notices_.emplace(comm_, rank_, ranks_);
  watch_peers();
}

// Watches a rank by its process if that is visible, and otherwise by its heartbeats.
void MpiWorld::watch_peers() {
  const ProcessIdentity mine = ProcessIdentity::own();
  const std::vector<ProcessIdentity> all = all_gather(*this, mine);
  std::map<std::string, int> hosts;
  std::vector<int> host_of;
  for (int other = 0; other < ranks_; ++other) {
    const ProcessIdentity& where = all[static_cast<std::size_t>(other)];
    const std::string name =
        options_.watches_processes ? where.processes + " " + where.network : std::to_string(other);
    host_of.push_back(hosts.try_emplace(name, static_cast<int>(hosts.size())).first->second);
    if (options_.watches_processes && where.processes == mine.processes && other != rank_) {
      local_peers_.push_back({other, WatchedProcess(where.process)});
    }
  }
  if (ranks_ > 1) {
    heartbeats_.emplace(comm_, FailureDetector(host_of, rank_), mutex_, options_.heartbeat_interval,
                        [this] { receive_notices(); });
  }
}

bool MpiWorld::start_receive(int from, std::string& text, MPI_Request& request) {
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
    while (!start_receive(round.from, text, receive)) {
      idle(round.from);
    }
    busy();
    complete(receive, round.from);
    split(text, all, round.receives, round.count);
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
  complete(request,
           (rank_ + 1) % ranks_);  // not by MPI_Comm_dup, which does not notice a lost rank
  const auto turn = lock();
  check_set_up(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  return std::make_unique<MpiTransport>(*this, comm, channels);
}

void MpiWorld::all_reduce(std::span<float> values) {
  const auto turn = lock();
  in_parts(values, max_count, [&](std::span<float> part) {
    check_set_up(MPI_Allreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT,
                               MPI_SUM, comm_));
  });
}

void MpiWorld::check_call(int code, int other) {
  if (code == MPI_SUCCESS) {
    return;
  }
  if (!std::exchange(failing_, true)) {
    check_peers();  // The call may have failed because of another rank, which is known by now.
  }
  lost_contact(other, "MPI: " + error_text(code));
}

void MpiWorld::lost_contact(int other, const std::string& why) {
  lost(other, lost_text(other) + why + " | seen by rank " + std::to_string(rank_));
}

void MpiWorld::lost(int culprit, const std::string& what) {
  abort(culprit, what);
  throw PeerLost(culprit, what);
}

// One round of a wait yields the processor. If another thread then runs, this wait and the next
// ones sleep between two polls, so that they do not alternate with compute threads.
void MpiWorld::idle(int waits_for) {
  // A longer yield means that another thread ran.
  constexpr std::chrono::microseconds contended_yield{100};
  constexpr std::chrono::microseconds nap{100};
  constexpr unsigned contention_memory = 64;
  constexpr std::chrono::milliseconds check_interval{2};
  // A longer time between two checks means that this process was stopped: it counts as one gap.
  constexpr std::chrono::seconds longest{1};
  const Clock::time_point before = Clock::now();
  if (contended_waits_ > 0) {
    std::this_thread::sleep_for(nap);
    slept_ = true;
  } else {
    ::sched_yield();
  }
  const Clock::time_point now = Clock::now();
  if (contended_waits_ == 0 && now - before > contended_yield) {
    contended_waits_ = contention_memory;
  }
  if (!std::exchange(waiting_, true)) {
    waited_ = {};
    last_check_ = now;
  }
  if (now - last_check_ < check_interval) {
    return;
  }
  waited_ += std::min<Clock::duration>(now - last_check_, longest);
  last_check_ = now;
  if (heartbeats_) {
    heartbeats_->wait_for(waits_for);
  }
  check_waiting();
  if (waited_ > options_.wait_timeout) {
    const bool asks_for_root = heartbeats_ && waits_for != any_rank;
    lost_contact(asks_for_root ? heartbeats_->root_of(waits_for) : waits_for,
                 "nothing from it for " + seconds_text(waited_));
  }
}

// Throws PeerLost for the rank whose heartbeat is overdue. Two hosts with a broken link blame each
// other.
void MpiWorld::check_heartbeats() {
  const FailureDetector::Overdue overdue =
      heartbeats_ ? heartbeats_->most_overdue() : FailureDetector::Overdue{};
  if (overdue.rank >= 0 && overdue.since > options_.heartbeat_timeout) {
    lost_contact(overdue.rank, "no heartbeat for " + seconds_text(overdue.since));
  }
}

// The heartbeat thread calls it too, so that notices are forwarded while this rank computes.
void MpiWorld::receive_notices() {
  const auto turn = lock();
  if (over_) {
    return;
  }
  const std::optional<AbortNotice> notice = notices_->receive();
  if (notice && (!received_ || notice->origin == 0)) {
    received_ = notice;
  }
}

bool MpiWorld::defers_notice() {
  constexpr unsigned most = 8;  // not a time, as a busy host may not run this process meanwhile
  return received_ && ++checks_after_notice_ <= most;
}

// Throws PeerLost if another rank has aborted the run, naming the culprit of its notice.
void MpiWorld::throw_if_notified() {
  if (const std::optional<AbortNotice> notice = received_) {
    stop_calling_mpi();
    notices_->wait_until_sent(farewell_timeout);
    throw PeerLost(notice->culprit,
                   notice->culprit == notice->origin
                       ? "rank " + std::to_string(notice->origin) + " is lost: " + notice->why
                       : notice->why,
                   PeerLost::Source::told);
  }
}

// A rank may have ended because of a notice that is still on its way to this rank.
bool MpiWorld::last_notice_comes(std::unique_lock<std::recursive_mutex>& turn) {
  constexpr std::chrono::milliseconds longest{300};
  const Clock::time_point start = Clock::now();
  do {
    receive_notices();
    if (received_) {
      return true;
    }
    turn.unlock();  // The heartbeat thread goes on meanwhile.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    turn.lock();
  } while (Clock::now() - start < longest);
  return false;
}

void MpiWorld::check_peers() {
  auto turn = lock();
  receive_notices();
  check_received(Caller::any, turn);
}

void MpiWorld::check_waiting() {
  auto turn = lock();
  receive_notices();
  if (!defers_notice()) {
    check_received(Caller::wait, turn);
  }
}

// Notices come first, because they tell more than the end of a process does.
void MpiWorld::check_received(Caller caller, std::unique_lock<std::recursive_mutex>& turn) {
  constexpr std::size_t checks_per_round = 16;  // of local processes, in turn
  throw_if_notified();
  for (std::size_t checks = 0; checks < std::min(local_peers_.size(), checks_per_round); ++checks) {
    auto& [other, process] = local_peers_[next_check_++ % local_peers_.size()];
    if (process.ended()) {
      if (last_notice_comes(turn) && caller == Caller::wait && defers_notice()) {
        return;
      }
      throw_if_notified();
      lost_contact(other, "process " + std::to_string(process.process()) + " has ended");
    }
    if (process.stopped() > options_.heartbeat_timeout) {
      lost_contact(other, "process " + std::to_string(process.process()) +
                              " has been stopped for " + seconds_text(process.stopped()));
    }
  }
  check_heartbeats();
}

void MpiWorld::stop_calling_mpi() {
  over_ = true;
  if (heartbeats_) {
    heartbeats_->end();
  }
}

void MpiWorld::abort(int culprit, std::string_view why) noexcept {
  try {
    const auto turn = lock();
    if (over_) {
      return;
    }
    stop_calling_mpi();
    notices_->send({.origin = rank_, .culprit = culprit, .why = std::string(why)});
    notices_->wait_until_sent(farewell_timeout);
  } catch (const std::exception&) {  // Out of memory: the others see that this process has ended.
    return;
  }
}

void MpiWorld::polled_all_reduce(std::span<float> values) {
  in_parts(values, max_count, [&](std::span<float> part) {
    MPI_Request request = MPI_REQUEST_NULL;
    auto turn = lock();
    check_call(MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT,
                              MPI_SUM, comm_, &request),
               any_rank);
    turn.unlock();
    complete(request, any_rank);
  });
}

// Notices of other ranks do not count, because those ranks may fail for the same reason.
bool MpiWorld::rank_0_reports(std::string_view why) noexcept {
  constexpr std::chrono::milliseconds most{2000};  // a busy host may not run rank 0 at once
  try {
    const Clock::time_point start = Clock::now();
    while (rank_ > 0 && Clock::now() - start < most) {
      {
        const auto turn = lock();
        if (over_) {
          return false;
        }
        receive_notices();
        if (received_ && received_->origin == 0) {
          return received_->culprit == 0 && received_->why == why;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (const std::exception&) {  // Out of memory, or rank 0 is lost: it does not report.
    return false;
  }
  return false;
}

void MpiWorld::finish() {
  barrier(*this);
  if (heartbeats_) {
    heartbeats_->stop();
  }
  const auto turn = lock();
  const CallDeadline deadline("MPI_Finalize", options_.start);
  MPI_Finalize();
}

}  // namespace cnn::allreduce
