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

// Messages of MPI between any two ranks: a channel is a tag. Rooms are private memory.
class MpiTransport final : public Transport {
 public:
  // comm: of all ranks of the world, for this transport alone. The world must outlive it.
  MpiTransport(MpiWorld& world, MPI_Comm comm, std::size_t channels);
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override;
  int ranks() const override;
  std::size_t channels() const override { return channels_; }

  Bytes room(std::size_t bytes) override;
  std::byte* in_sight(int rank, std::byte* own) override;
  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override;
  bool sent(int to, std::size_t channel) override;
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override;
  bool received(int from, std::size_t channel) override;
  void come(std::span<const int> group, std::size_t channel) override;
  bool have_come(std::span<const int> group, std::size_t channel) override;
  void idle(int waits_for) override;
  void busy() override;
  void leave(std::optional<int> /*lost*/) override {}  // MpiWorld::give_up() tells why
  Progress* progress() override {
    tell(progress_);
    return &progress_;
  }
  std::uint64_t progress_of(int rank) override;
  void tell(const Progress& instead) override;

 private:
  // Messages under way to and from a rank, by channel.
  struct Peer {
    std::vector<MPI_Request> sends, receives;
    std::vector<std::uint64_t> come,
        came;  // how often this rank, and that one, has come to meet the other
  };
  // Made when this rank talks to it for the first time, under the lock of the world.
  Peer& peer(int rank);
  // Under the lock of the world too.
  bool has_come(int other, std::size_t channel);

  int tag(std::size_t channel) const { return static_cast<int>(channel); }
  int meeting_tag(std::size_t channel) const { return static_cast<int>(channels_ + channel); }

  MpiWorld& world_;
  MPI_Comm comm_;
  std::size_t channels_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; null: not talked to
  std::vector<Bytes> rooms_;
  Progress progress_{0};
  bool tells_ = false;
};

}  // namespace cnn::allreduce
