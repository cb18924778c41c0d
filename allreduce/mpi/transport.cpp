#include "allreduce/mpi/transport.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>

#include "allreduce/mpi/world.h"

namespace cnn::allreduce {
namespace {

constexpr std::size_t longest_block = std::size_t{1} << 30U;  // because MPI counts in int

// An MPI type whose single element is all the pieces. Pending messages keep the type alive.
class PiecesType {
 public:
  explicit PiecesType(std::span<const Bytes> pieces) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    for (Bytes rest : pieces) {
      while (!rest.empty()) {
        const Bytes block = rest.first(std::min(rest.size(), longest_block));
        lengths.push_back(static_cast<int>(block.size()));
        MPI_Get_address(block.data(), &places.emplace_back());
        rest = rest.subspan(block.size());
      }
    }
    MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(),
                             MPI_BYTE, &type_);
    MPI_Type_commit(&type_);
  }
  ~PiecesType() { MPI_Type_free(&type_); }
  PiecesType(const PiecesType&) = delete;
  PiecesType& operator=(const PiecesType&) = delete;

  MPI_Datatype type() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// Calls call(address, count, type) for the pieces.
template <class Call>
int with_pieces(std::span<const Bytes> pieces, const Call& call) {
  if (pieces.size() == 1 && pieces.front().size() <= longest_block) {
    return call(pieces.front().data(), static_cast<int>(pieces.front().size()), MPI_BYTE);
  }
  const PiecesType type(pieces);
  return call(MPI_BOTTOM, 1, type.type());
}

}  // namespace

MpiTransport::MpiTransport(MpiWorld& world, MPI_Comm comm, std::size_t channels)
    : world_(world),
      comm_(comm),
      channels_(channels),
      peers_(static_cast<std::size_t>(world.ranks())) {}

// Does not free the communicator, because that would wait for all ranks.
MpiTransport::~MpiTransport() {
  if (publishes_) {
    world_.publish(nullptr);
  }
  for (const Bytes& memory : allocations_) {
    ::munmap(memory.data(), memory.size());
  }
}

int MpiTransport::rank() const { return world_.rank(); }
int MpiTransport::ranks() const { return world_.ranks(); }

MpiTransport::Peer& MpiTransport::peer(int rank) {
  std::unique_ptr<Peer>& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer == nullptr) {
    peer = std::make_unique<Peer>();
    peer->sends.resize(channels_, MPI_REQUEST_NULL);
    peer->receives.resize(channels_, MPI_REQUEST_NULL);
    peer->arrivals.resize(channels_);
    peer->peer_arrivals.resize(channels_);
  }
  return *peer;
}

Bytes MpiTransport::allocate_shared(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(memory != MAP_FAILED, "no memory for " + std::to_string(bytes >> 20U) +
                                  " MiB that a rank exchanges: " + std::strerror(errno));
  ::madvise(memory, size, MADV_HUGEPAGE);  // A hint: failure does no harm.
  allocations_.emplace_back(static_cast<std::byte*>(memory), size);
  return allocations_.back().first(bytes);
}

std::byte* MpiTransport::peer_address(int rank, std::byte* own) {
  return rank == this->rank() ? own : nullptr;
}

void MpiTransport::send(int to, std::size_t channel, std::span<const Bytes> pieces) {
  const auto lock = world_.lock();
  const int code = with_pieces(pieces, [&](const void* data, int count, MPI_Datatype type) {
    return MPI_Isend(data, count, type, to, tag(channel), comm_, &peer(to).sends[channel]);
  });
  world_.check_call(code, to);
}

void MpiTransport::receive(int from, std::size_t channel, std::span<const Bytes> /*at_sender*/,
                           std::span<const Bytes> to) {
  const auto lock = world_.lock();
  const int code = with_pieces(to, [&](void* data, int count, MPI_Datatype type) {
    return MPI_Irecv(data, count, type, from, tag(channel), comm_, &peer(from).receives[channel]);
  });
  world_.check_call(code, from);
}

bool MpiTransport::sent(int to, std::size_t channel) {
  const auto lock = world_.lock();
  return world_.test(peer(to).sends[channel], to);
}

bool MpiTransport::received(int from, std::size_t channel) {
  const auto lock = world_.lock();
  return world_.test(peer(from).receives[channel], from);
}

void MpiTransport::arrive(std::span<const int> group, std::size_t channel) {
  const auto lock = world_.lock();
  for (const int to : group) {
    if (to != rank()) {
      ++peer(to).arrivals[channel];
      MPI_Request request = MPI_REQUEST_NULL;
      world_.check_call(MPI_Isend(nullptr, 0, MPI_BYTE, to, barrier_tag(channel), comm_, &request),
                        to);
      world_.check_call(MPI_Request_free(&request), to);  // An empty message needs no memory.
    }
  }
}

bool MpiTransport::arrived(std::span<const int> group, std::size_t channel) {
  const auto lock = world_.lock();
  return std::ranges::all_of(
      group, [&](int other) { return other == rank() || has_arrived(other, channel); });
}

bool MpiTransport::has_arrived(int other, std::size_t channel) {
  Peer& state = peer(other);
  for (std::uint64_t& arrived = state.peer_arrivals[channel]; arrived < state.arrivals[channel];
       ++arrived) {
    int here = 0;
    world_.check_call(MPI_Iprobe(other, barrier_tag(channel), comm_, &here, MPI_STATUS_IGNORE),
                      other);
    if (here == 0) {
      return false;
    }
    world_.check_call(
        MPI_Recv(nullptr, 0, MPI_BYTE, other, barrier_tag(channel), comm_, MPI_STATUS_IGNORE),
        other);
  }
  return true;
}

void MpiTransport::idle(int waits_for) { world_.idle(waits_for); }
void MpiTransport::busy() { world_.busy(); }

std::uint64_t MpiTransport::progress_of(int rank) { return world_.progress_of(rank); }

void MpiTransport::publish(const Progress& source) {
  publishes_ = true;
  world_.publish(&source);
}

}  // namespace cnn::allreduce
