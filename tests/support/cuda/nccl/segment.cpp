#include "tests/support/cuda/nccl/segment.h"

#include <cstdio>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/error.h"

namespace cnn::tests::emulated {
namespace {

constexpr std::size_t header_bytes = std::size_t{64} << 10U;
constexpr const char* id_format = "emulated communicator %d %d";

}  // namespace

ncclUniqueId Segment::create() {
  static_assert(sizeof(Header) <= header_bytes);
  const int file = ::memfd_create("emulated_nccl", MFD_CLOEXEC);
  check(file >= 0, "the emulated NCCL cannot create memory to share");
  ncclUniqueId id{};
  static_cast<void>(std::snprintf(id.internal, sizeof(id.internal), id_format, ::getpid(), file));
  return id;  // keeps the descriptor open, so that ranks can join while this process lives
}

Segment::Segment(const ncclUniqueId& id, int ranks)
    : bytes_(header_bytes + static_cast<std::size_t>(ranks) * chunk_bytes) {
  int process = 0, descriptor = 0;
  // NOLINTNEXTLINE(cert-err34-c): the count shows whether both numbers exist
  check(std::sscanf(id.internal, id_format, &process, &descriptor) == 2,
        "the unique ID was not made by ncclGetUniqueId");
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  check(file >= 0, "the process that made the unique ID is gone");
  void* data = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(bytes_)) == 0) {
    data = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  check(data != MAP_FAILED, "the memory that ranks share cannot be mapped");
  data_ = static_cast<std::byte*>(data);
}

Segment::~Segment() { ::munmap(data_, bytes_); }

int Segment::agree_on_ranks(int ranks) {
  int first = 0;
  return reinterpret_cast<Header*>(data_)->ranks.compare_exchange_strong(first, ranks) ? ranks
                                                                                       : first;
}

Segment::Slot& Segment::slot(int rank) {
  return reinterpret_cast<Header*>(data_)->slots.at(static_cast<std::size_t>(rank));
}

std::byte* Segment::chunk(int rank) {
  return data_ + header_bytes + static_cast<std::size_t>(rank) * chunk_bytes;
}

}  // namespace cnn::tests::emulated
