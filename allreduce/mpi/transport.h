#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mpi.h>
#include <optional>
#include <span>
#include <vector>

#include "allreduce/transport.h"

namespace cnn::allreduce {

class MpiWorld;

// A transport of MPI messages between any two ranks: a channel is a tag. No peer can address the
// memory that allocate_shared() returns.
class MpiTransport final : public Transport {
 public:
  // comm: a communicator of all ranks for this transport alone. The world must outlive it.
  MpiTransport(MpiWorld& world, MPI_Comm comm, std::size_t channels);
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override;
  int ranks() const override;
  std::size_t channels() const override { return channels_; }

  Bytes allocate_shared(std::size_t bytes) override;
  std::byte* peer_address(int rank, std::byte* own) override;
  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override;
  bool sent(int to, std::size_t channel) override;
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override;
  bool received(int from, std::size_t channel) override;
  void arrive(std::span<const int> group, std::size_t channel) override;
  bool arrived(std::span<const int> group, std::size_t channel) override;
  void idle(int waits_for) override;
  void busy() override;
  void leave(std::optional<int> /*lost*/) override {}  // MpiWorld::abort() tells the others.
  Progress* progress() override {
    publish(progress_);
    return &progress_;
  }
  std::uint64_t progress_of(int rank) override;
  void publish(const Progress& source) override;

 private:
  // The pending messages to and from a rank, by channel.
  struct Peer {
    std::vector<MPI_Request> sends, receives;
    // For each channel, the number of barriers at which this rank, and the peer, has arrived.
    std::vector<std::uint64_t> arrivals, peer_arrivals;
  };
  // Returns the state of a peer, which is made at the first use. The caller holds the world's lock.
  Peer& peer(int rank);
  // Returns whether that rank has arrived at this rank's barrier. The caller holds the world's
  // lock.
  bool has_arrived(int other, std::size_t channel);

  int tag(std::size_t channel) const { return static_cast<int>(channel); }
  int barrier_tag(std::size_t channel) const { return static_cast<int>(channels_ + channel); }

  MpiWorld& world_;
  MPI_Comm comm_;
  std::size_t channels_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; null: not used yet
  std::vector<Bytes> allocations_;
  Progress progress_{0};
  bool publishes_ = false;
};

}  // namespace cnn::allreduce
