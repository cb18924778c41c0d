#include "allreduce/nccl/communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/memory_plan.h"
#include "runtime/shared_handle.h"

namespace cnn::allreduce::nccl {
namespace {

std::string text_of(const Library& library, Status status, Comm comm) {
  std::string text = "NCCL: " + std::string(library.error_text(status));
  const char* const last = library.last_error == nullptr ? nullptr : library.last_error(comm);
  return last == nullptr || *last == '\0' ? text : text + ": " + last;
}

// Joins adjacent pieces: the padding between them belongs to them and may be summed too. All ranks
// have the same memory plan.
std::vector<std::span<float>> joined(std::span<const std::span<float>> pieces) {
  std::vector<std::span<float>> rows;
  for (const std::span<float>& piece : pieces) {
    const auto begin = reinterpret_cast<std::uintptr_t>(piece.data());
    const auto end =
        rows.empty() ? 0
                     : reinterpret_cast<std::uintptr_t>(rows.back().data() + rows.back().size());
    if (end != 0 && begin >= end && begin - end < alignment) {
      const std::size_t padding = (begin - end) / sizeof(float);
      rows.back() = {rows.back().data(), rows.back().size() + padding + piece.size()};
    } else {
      rows.push_back(piece);
    }
  }
  return rows;
}

}  // namespace

// Calls ncclCommAbort on a separate thread. NCCL cannot cancel the call: the destructor waits long
// enough for an undisturbed abort, then abandons the thread, with the streams and the memory that
// NCCL may still use.
class Communicator::Abort {
 public:
  Abort(const Library& library, Comm comm, std::vector<std::shared_ptr<void>> used)
      : state_(std::make_shared<State>(std::move(used))) {
    std::thread([state = state_, abort = library.abort, comm] {
      static_cast<void>(abort(comm));
      const std::lock_guard lock(state->mutex);
      state->ended = true;
      state->changed.notify_all();
    }).detach();
  }
  ~Abort() {
    constexpr std::chrono::seconds longest{30};
    std::unique_lock lock(state_->mutex);
    if (state_->changed.wait_for(lock, longest, [this] { return state_->ended; })) {
      state_->used.clear();
    }
  }
  Abort(const Abort&) = delete;
  Abort& operator=(const Abort&) = delete;

 private:
  struct State {
    explicit State(std::vector<std::shared_ptr<void>> used_by_nccl)
        : used(std::move(used_by_nccl)) {}
    std::vector<std::shared_ptr<void>> used;
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
  };
  std::shared_ptr<State> state_;
};

UniqueId make_id(const Library& library) {
  UniqueId id;
  const Status status = library.get_unique_id(&id);
  check(status == success, text_of(library, status, nullptr));
  return id;
}

Communicator::Communicator(const Library& library, Team team)
    : library_(library), team_(std::move(team)) {
  Config config;
  const Status status = library_.init_rank(&comm_, team_.ranks, team_.id, team_.rank, &config);
  settle(status);
}

Communicator::~Communicator() { abort({}); }  // unlike the alternatives, it waits for no rank

void Communicator::all_reduce(Stream& stream, std::size_t /*bucket*/,
                              std::span<const std::span<float>> pieces, float factor) {
  if (comm_ == nullptr) {
    throw Error("the exchange has failed before: " + failure_);
  }
  const int operation = operation_for(factor);
  void* const native = team_.native(stream);
  if (const auto* owner = dynamic_cast<const SharedHandle*>(&stream)) {
    keep_in_abort(owner->shared_handle());
  }
  settle(library_.group_start());
  for (const std::span<float>& row : joined(pieces)) {
    const Status status =
        library_.all_reduce(row.data(), row.data(), row.size(), float32, operation, comm_, native);
    if (status != success && status != in_progress) {
      static_cast<void>(library_.group_end());
      fail(status);
    }
  }
  settle(library_.group_end());
}

// All ranks request the same factors in the same order, that of the plan's steps.
int Communicator::operation_for(float factor) {
  if (factor == 1) {
    return sum;
  }
  const auto [place, is_new] = operations_.try_emplace(factor);
  if (is_new) {
    settle(library_.make_scaled_sum(&place->second, &factor, float32, host_scalar, comm_));
  }
  return place->second;
}

void Communicator::keep_in_abort(const std::shared_ptr<void>& used) {
  std::erase_if(used_by_nccl_, [](const std::weak_ptr<void>& known) { return known.expired(); });
  if (std::ranges::none_of(
          used_by_nccl_, [&](const std::weak_ptr<void>& known) { return known.lock() == used; })) {
    used_by_nccl_.push_back(used);
  }
}

void Communicator::share(const std::shared_ptr<Buffer>& memory) { keep_in_abort(memory); }

std::shared_ptr<void> Communicator::attach(const std::shared_ptr<Buffer>& memory) {
  share(memory);
  void* handle = nullptr;
  if (library_.attach == nullptr || library_.detach == nullptr ||
      library_.attach(comm_, memory->data(), memory->bytes(), &handle) != success) {
    return nullptr;  // NCCL then copies
  }
  return {handle, [this](void* attached) {
            if (comm_ != nullptr) {
              static_cast<void>(library_.detach(comm_, attached));
            }
          }};
}

void Communicator::poll(bool waiting) {
  if (comm_ == nullptr || !waiting) {
    team_.check_peers(false);
    return;
  }
  Status status = success;
  const Status query = library_.async_error(comm_, &status);
  if (query != success || (status != success && status != in_progress)) {
    fail(query != success ? query : status);
  }
  try {
    team_.check_peers(true);
  } catch (const std::exception& error) {
    abort(error.what());
    throw;
  }
}

void Communicator::settle(Status status) {
  if (status != in_progress) {
    if (status != success) {
      fail(status);
    }
    return;
  }
  while (status == in_progress) {
    poll(true);
    if (const Status query = library_.async_error(comm_, &status); query != success) {
      fail(query);
    }
  }
  team_.check_peers(false);
  if (status != success) {
    fail(status);
  }
}

void Communicator::abort(std::string_view why) {
  if (comm_ == nullptr) {
    return;
  }
  failure_ = why;
  std::vector<std::shared_ptr<void>> used;
  for (const std::weak_ptr<void>& known : used_by_nccl_) {
    if (std::shared_ptr<void> alive = known.lock()) {
      used.push_back(std::move(alive));
    }
  }
  abort_ = std::make_unique<Abort>(library_, std::exchange(comm_, nullptr), std::move(used));
}

// NCCL may notice a lost rank first, but does not name it.
void Communicator::fail(Status status) {
  std::string text = text_of(library_, status, comm_);
  if (status == cuda_error) {
    text += " (on rank " + std::to_string(team_.rank) +
            "; NCCL takes buffers on its device: is enough of the memory free there?)";
  }
  abort(text);
  if (status == remote_error || status == system_error) {
    constexpr int looks = 200;
    for (int look = 0; look < looks; ++look) {
      team_.check_peers(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    team_.check_peers(false);
  }
  throw Error(text);
}

}  // namespace cnn::allreduce::nccl
