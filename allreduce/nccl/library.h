#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace cnn::allreduce::nccl {

// The part of NCCL's binary interface that is used, as its header has it. The library is opened by
// runs that need it, so that neither the build nor a machine without GPUs does.
using Status = int;
using Comm = void*;
inline constexpr Status success = 0, cuda_error = 1, system_error = 2, remote_error = 6,
                        in_progress = 7;
inline constexpr int float32 = 7;            // type
inline constexpr int sum = 0;                // operation
inline constexpr int host_scalar = 1;        // a scalar is read before the call returns
inline constexpr int least_version = 21400;  // 2.14: calls that do not block

struct UniqueId {
  std::array<char, 128> bytes{};
};

// As version 2.14 has it, which all later ones take: they know what is not there by the size.
struct Config {
  std::size_t size = 24;
  unsigned magic = 0xcafebeef;
  unsigned version = least_version;
  int blocking = 0;
};
static_assert(sizeof(Config) == 24);

struct Library {
  int version = 0;
  Status (*get_unique_id)(UniqueId* id) = nullptr;
  Status (*init_rank)(Comm* comm, int ranks, UniqueId id, int rank, Config* config) = nullptr;
  Status (*all_reduce)(const void* from, void* to, std::size_t count, int type, int operation,
                       Comm comm, void* stream) = nullptr;
  Status (*group_start)() = nullptr;
  Status (*group_end)() = nullptr;
  // Makes an operation that multiplies by the scalar what it then sums; it goes with the
  // communicator.
  Status (*make_scaled_sum)(int* operation, const void* scalar, int type, int residence,
                            Comm comm) = nullptr;
  Status (*async_error)(Comm comm, Status* error) = nullptr;
  Status (*abort)(Comm comm) = nullptr;
  const char* (*error_text)(Status status) = nullptr;
  // Older ones lack these.
  const char* (*last_error)(Comm comm) = nullptr;
  Status (*attach)(Comm comm, void* memory, std::size_t bytes, void** handle) = nullptr;
  Status (*detach)(Comm comm, void* handle) = nullptr;
};

// Opens it, to stay for as long as the program runs. Throws Error that says what is missing.
Library open_library(const std::string& file = "libnccl.so.2");

std::string version_text(int version);  // "2.28.9"

}  // namespace cnn::allreduce::nccl
