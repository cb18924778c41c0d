#include "allreduce/nccl/communicator.h"

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::allreduce::nccl {
namespace {

std::string text_of(const Library& library, Status status, Comm comm) {
  std::string text = "NCCL: " + std::string(library.error_text(status));
  const char* const last = library.last_error == nullptr ? nullptr : library.last_error(comm);
  return last == nullptr || *last == '\0' ? text : text + ": " + last;
}

// Neighbours as one: the padding between them is theirs and may be summed too. All ranks have the
// same plan of their memory.
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

Communicator::~Communicator() { abort(); }  // which, unlike the alternatives, waits for nobody

void Communicator::all_reduce(Stream& stream, std::size_t /*bucket*/,
                              std::span<const std::span<float>> pieces, float factor) {
  check(comm_ != nullptr, "NCCL: the exchange has failed before");
  const bool averages = factor != 1;
  check(!averages || factor == 1 / static_cast<float>(team_.ranks),
        "NCCL sums or averages, and knows no other factor");
  void* const native = team_.native(stream);
  settle(library_.group_start());
  for (const std::span<float>& row : joined(pieces)) {
    const Status status = library_.all_reduce(row.data(), row.data(), row.size(), float32,
                                              averages ? average : sum, comm_, native);
    if (status != success && status != in_progress) {
      static_cast<void>(library_.group_end());
      fail(status);
    }
  }
  settle(library_.group_end());
}

std::shared_ptr<void> Communicator::attach(std::span<std::byte> memory) {
  void* handle = nullptr;
  if (library_.attach == nullptr || library_.detach == nullptr ||
      library_.attach(comm_, memory.data(), memory.size(), &handle) != success) {
    return nullptr;  // it copies then
  }
  return {handle, [this](void* attached) {
            if (comm_ != nullptr) {
              static_cast<void>(library_.detach(comm_, attached));
            }
          }};
}

void Communicator::look(bool waiting) {
  if (comm_ == nullptr || !waiting) {
    team_.look_around(false);
    return;
  }
  Status status = success;
  const Status asked = library_.async_error(comm_, &status);
  if (asked != success || (status != success && status != in_progress)) {
    fail(asked != success ? asked : status);
  }
  try {
    team_.look_around(true);
  } catch (...) {
    abort();
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
    look(true);
    if (const Status asked = library_.async_error(comm_, &status); asked != success) {
      fail(asked);
    }
  }
  team_.look_around(false);
  if (status != success) {
    fail(status);
  }
}

void Communicator::abort() {
  if (comm_ != nullptr) {
    static_cast<void>(library_.abort(std::exchange(comm_, nullptr)));
  }
}

// NCCL may notice a lost rank first, but does not name it.
void Communicator::fail(Status status) {
  const std::string text = text_of(library_, status, comm_);
  abort();
  if (status == remote_error || status == system_error) {
    constexpr int looks = 200;
    for (int look = 0; look < looks; ++look) {
      team_.look_around(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    team_.look_around(false);
  }
  throw Error(text);
}

}  // namespace cnn::allreduce::nccl
