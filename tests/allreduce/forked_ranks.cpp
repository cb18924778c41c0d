#include "tests/allreduce/forked_ranks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "runtime/seconds_since.h"

namespace cnn::tests {
namespace {

using Clock = std::chrono::steady_clock;

// A rank's report to the test, in shared memory that outlives the rank.
struct LastWords {
  int culprit = -1;
  Clock::time_point when{};
  std::array<char, 200> error{};
};

class LastWordsOfAll {
 public:
  explicit LastWordsOfAll(int ranks) : bytes_(sizeof(LastWords) * static_cast<std::size_t>(ranks)) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int rank = 0; rank < ranks; ++rank) {
      new (&of(rank)) LastWords;
    }
  }
  ~LastWordsOfAll() { ::munmap(memory_, bytes_); }
  LastWordsOfAll(const LastWordsOfAll&) = delete;
  LastWordsOfAll& operator=(const LastWordsOfAll&) = delete;

  LastWords& of(int rank) const { return static_cast<LastWords*>(memory_)[rank]; }

 private:
  std::size_t bytes_;
  void* memory_;
};

int run_rank(allreduce::SharedMemory& memory, int rank, LastWords& words,
             const std::function<int(allreduce::Transport&)>& work) {
  const auto keep = [&words](const char* error) {
    words.when = Clock::now();
    std::strncpy(words.error.data(), error, words.error.size() - 1);
  };
  try {
    allreduce::SharedMemory mine = allreduce::SharedMemory::open(::dup(memory.descriptor()));
    const auto transport = mine.join(rank);
    return work(*transport);
  } catch (const allreduce::PeerLost& lost) {
    words.culprit = lost.rank();
    keep(lost.what());
    return lost.exit_code();
  } catch (const std::exception& error) {
    keep(error.what());
    return 1;
  }
}

// Waits until all children have ended or only stopped children are left.
class ChildrenWatch {
 public:
  explicit ChildrenWatch(std::vector<pid_t> children) : children_(std::move(children)) {
    ends_.resize(children_.size());
    running_ = stopped_ = std::vector<bool>(children_.size());
    running_.flip();
  }

  void wait(ForkedRun& run) {
    constexpr std::chrono::minutes watchdog{1};
    constexpr std::chrono::microseconds between_looks{300};
    const Clock::time_point start = Clock::now();
    while (running_ != stopped_ && Clock::now() - start < watchdog) {
      look();
      std::this_thread::sleep_for(between_looks);
    }
    run.hung = running_ != stopped_;
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      if (running_[rank]) {
        ::kill(children_[rank], SIGKILL);
        ends_[rank].was_stopped = stopped_[rank];
        ends_[rank].status = 128 + SIGKILL;
        ::waitpid(children_[rank], nullptr, 0);
      }
    }
    run.ranks = ends_;
  }
  Clock::time_point first_death() const { return first_death_; }

 private:
  void look() {
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      int status = 0;
      if (!running_[rank] ||
          ::waitpid(children_[rank], &status, WNOHANG | WUNTRACED) != children_[rank]) {
        continue;
      }
      first_death_ = std::min(first_death_, Clock::now());
      stopped_[rank] = WIFSTOPPED(status);
      running_[rank] = stopped_[rank];
      ends_[rank].status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }

  std::vector<pid_t> children_;
  std::vector<RankEnd> ends_;
  std::vector<bool> running_, stopped_;
  Clock::time_point first_death_ = Clock::time_point::max();
};

}  // namespace

ForkedRun as_processes(int ranks, const allreduce::SharedMemoryOptions& options,
                       const std::function<int(allreduce::Transport&)>& work) {
  allreduce::SharedMemory memory = allreduce::SharedMemory::create(ranks, options);
  const LastWordsOfAll words(ranks);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(::fork());
    if (children.back() == 0) {
      ::_exit(run_rank(memory, rank, words.of(rank), work));
    }
  }
  ForkedRun run;
  ChildrenWatch watch(children);
  watch.wait(run);
  Clock::time_point last = watch.first_death();
  for (int rank = 0; rank < ranks; ++rank) {
    const LastWords& last_words = words.of(rank);
    RankEnd& end = run.ranks[static_cast<std::size_t>(rank)];
    end.culprit = last_words.culprit;
    end.error = last_words.error.data();
    last = last_words.culprit < 0 ? last : std::max(last, last_words.when);
  }
  run.naming_seconds = in_seconds(last - watch.first_death());
  return run;
}

}  // namespace cnn::tests
