#include "allreduce/mpi/world.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "allreduce/mpi/transport.h"

namespace cnn::allreduce {
namespace {

constexpr int gather_tag = 1, give_up_tag = 2;

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

void check_set_up(int code) { check(code == MPI_SUCCESS, "MPI cannot start: " + error_text(code)); }

std::string name_of_space(const char* kind) {
  std::error_code ignored;
  return std::filesystem::read_symlink(kind, ignored).string();
}

// What tells a rank how it can notice the end of another.
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
  check_set_up(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  check(provided >= MPI_THREAD_SERIALIZED,
        "this MPI cannot be called by several threads in turn; use Open MPI 4 or newer");
  check_set_up(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
  check_set_up(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  check_set_up(MPI_Comm_rank(comm_, &rank_));
  check_set_up(MPI_Comm_size(comm_, &ranks_));
  watch();
}

// By its process where that can be seen, and by its signs of life where a cable is between.
void MpiWorld::watch() {
  const Whereabouts mine = Whereabouts::own();
  const std::vector<std::string> all = gather(mine.text());
  std::vector<int> far;
  for (int other = 0; other < ranks_; ++other) {
    const Whereabouts where = Whereabouts::read(all[static_cast<std::size_t>(other)]);
    const bool sees = options_.watches_processes && where.processes == mine.processes;
    watched_.emplace_back(sees && other != rank_ ? where.process : 0);
    if (other != rank_ && !(sees && where.network == mine.network)) {
      far.push_back(other);
    }
  }
  heartbeats_.emplace(comm_, far, mutex_, options_.between_beats);
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
  outgoing_ = mine;
  const auto count = static_cast<std::size_t>(ranks_);
  std::vector<MPI_Request> sends(count, MPI_REQUEST_NULL);
  std::vector<std::string> all(count);
  all[static_cast<std::size_t>(rank_)] = mine;
  for (int to = 0; to < ranks_; ++to) {
    if (to != rank_) {
      const auto turn = lock();
      check_call(MPI_Isend(outgoing_.data(), static_cast<int>(outgoing_.size()), MPI_CHAR, to,
                           gather_tag, comm_, &sends[static_cast<std::size_t>(to)]),
                 to);
    }
  }
  for (int from = 0; from < ranks_; ++from) {
    MPI_Request request = MPI_REQUEST_NULL;
    while (from != rank_ && !take(from, all[static_cast<std::size_t>(from)], request)) {
      idle(from);
    }
    busy();
    complete(request, from);
  }
  for (int to = 0; to < ranks_; ++to) {
    complete(sends[static_cast<std::size_t>(to)], to);
  }
  return all;
}

std::unique_ptr<Transport> MpiWorld::connect(std::size_t channels) {
  const auto turn = lock();
  MPI_Comm comm = MPI_COMM_NULL;
  check_set_up(MPI_Comm_dup(comm_, &comm));
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
  lost(other, "rank " + std::to_string(other) + " is lost: " + why + " | seen by rank " +
                  std::to_string(rank_));
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
  look_around();
  if (waited_ > options_.patience) {
    miss(waits_for, "nothing from it for " + in_seconds(waited_));
  }
}

// Of two hosts whose link is cut each names the other.
void MpiWorld::listen() {
  const Heartbeats::Silence silence = heartbeats_ ? heartbeats_->longest() : Heartbeats::Silence{};
  if (silence.rank >= 0 && silence.lasts > options_.silence) {
    miss(silence.rank, "no sign of life for " + in_seconds(silence.lasts));
  }
}

std::optional<std::string> MpiWorld::take_reason(int from, int& source) {
  int here = 0;
  MPI_Status status;
  check_set_up(MPI_Iprobe(from, give_up_tag, comm_, &here, &status));
  if (here == 0) {
    return std::nullopt;
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_CHAR, &bytes);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  source = status.MPI_SOURCE;
  check_call(MPI_Recv(text.data(), bytes, MPI_CHAR, source, give_up_tag, comm_, MPI_STATUS_IGNORE),
             source);
  return text;
}

// Throws if a rank has said that it gives up, and because of whom.
void MpiWorld::hear() {
  int from = 0;
  if (std::optional<std::string> text = take_reason(MPI_ANY_SOURCE, from)) {
    int culprit = from;
    std::from_chars(text->data(), text->data() + text->size(), culprit);
    text->erase(0, text->find(' ') + 1);
    end_calls();  // who said so has told all
    throw PeerLost(culprit,
                   culprit == from ? "rank " + std::to_string(from) + " is lost: " + *text : *text);
  }
}

// What a rank has said comes before what its own end looks like.
void MpiWorld::look_around() {
  constexpr int last_words = 50;  // that may be on the way when their rank has ended
  const auto turn = lock();
  hear();
  for (int other = 0; other < static_cast<int>(watched_.size()); ++other) {
    WatchedProcess& process = watched_[static_cast<std::size_t>(other)];
    if (process.ended()) {
      for (int i = 0; i < last_words; ++i) {
        hear();
      }
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
  constexpr std::chrono::milliseconds most{300};
  try {
    const auto turn = lock();
    if (over_) {
      return;
    }
    end_calls();
    outgoing_ = std::to_string(culprit) + " " + std::string(why);
    std::vector<MPI_Request> sends;
    MPI_Request to_culprit = MPI_REQUEST_NULL;  // which may be there again, but is not waited for
    for (int to = 0; to < ranks_; ++to) {
      if (to != rank_) {
        MPI_Isend(outgoing_.data(), static_cast<int>(outgoing_.size()), MPI_CHAR, to, give_up_tag,
                  comm_, to == culprit ? &to_culprit : &sends.emplace_back(MPI_REQUEST_NULL));
      }
    }
    int all_sent = 0;
    const Clock::time_point start = Clock::now();
    while (all_sent == 0 && Clock::now() - start < most) {
      MPI_Testall(static_cast<int>(sends.size()), sends.data(), &all_sent, MPI_STATUSES_IGNORE);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (const std::exception&) {  // no memory: others see that this process has ended
    return;
  }
}

void MpiWorld::watchful_all_reduce(std::span<float> values) {
  constexpr std::size_t most = std::size_t{1} << 30U;  // MPI counts in int
  const int next = (rank_ + 1) % ranks_;
  while (!values.empty()) {
    const std::span<float> part = values.first(std::min(values.size(), most));
    MPI_Request request = MPI_REQUEST_NULL;
    auto turn = lock();
    check_call(MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT,
                              MPI_SUM, comm_, &request),
               next);
    turn.unlock();
    complete(request, next);
    values = values.subspan(part.size());
  }
}

bool MpiWorld::first_says(std::string_view why) noexcept {
  constexpr std::chrono::milliseconds most{500};
  try {
    const Clock::time_point start = Clock::now();
    while (rank_ > 0 && !over_ && Clock::now() - start < most) {
      const auto turn = lock();
      int from = 0;
      if (const std::optional<std::string> text = take_reason(0, from)) {
        return *text == "0 " + std::string(why);
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
  heartbeats_->stop();
  const auto turn = lock();
  MPI_Finalize();
}

}  // namespace cnn::allreduce
