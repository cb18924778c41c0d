#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace cnn::allreduce::nccl {

// The used part of NCCL's binary interface, copied from its header. Runs that need the library open
// it at run time, so that neither the build nor a machine without GPUs requires it.
using Status = int;
using Comm = void*;
inline constexpr Status success = 0, cuda_error = 1, system_error = 2, remote_error = 6,
                        in_progress = 7;
inline constexpr int float32 = 7;          // type
inline constexpr int sum = 0;              // operation
inline constexpr int host_scalar = 1;      // the scalar is read before the call returns
inline constexpr int min_version = 21400;  // 2.14: first version with non-blocking calls

struct UniqueId {
  std::array<char, 128> bytes{};
};

// The configuration of version 2.14. Later versions accept it: they detect missing members by
// `size`.
struct Config {
  std::size_t size = 24;
  unsigned magic = 0xcafebeef;
  unsigned version = min_version;
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
  // Creates an operation that multiplies by the scalar before it sums; it lives as long as the
  // communicator.
  Status (*make_scaled_sum)(int* operation, const void* scalar, int type, int residence,
                            Comm comm) = nullptr;
  Status (*async_error)(Comm comm, Status* error) = nullptr;
  Status (*abort)(Comm comm) = nullptr;
  const char* (*error_text)(Status status) = nullptr;
  // Null in older versions.
  const char* (*last_error)(Comm comm) = nullptr;
  Status (*attach)(Comm comm, void* memory, std::size_t bytes, void** handle) = nullptr;
  Status (*detach)(Comm comm, void* handle) = nullptr;
};

// Opens the library for the life of the program. Throws Error that names what is missing.
Library open_library(const std::string& file = "libnccl.so.2");

std::string version_text(int version);  // "2.28.9"

}  // namespace cnn::allreduce::nccl
