#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <span>

#include "allreduce/transport.h"

namespace cnn::allreduce {

// Multiplexes the messages and barriers of the ranks that are threads of one process over one
// transport between processes: any two ranks have channels of their own there. Ranks are numbered
// process by process. It reaches the ranks of other processes alone; those of one share memory.
class MultiplexedTransport final : public Transport {
 public:
  // each: the ranks of every process; this is number `local_rank` of its own. processes: its
  // channels are divided among the each * each pairs of ranks. mutex: held during a round of a
  // wait. Both must outlive this object.
  MultiplexedTransport(Transport& processes, std::mutex& mutex, int local_rank, int each)
      : processes_(processes), mutex_(mutex), local_rank_(local_rank), each_(each) {}

  int rank() const override { return processes_.rank() * each_ + local_rank_; }
  int ranks() const override { return processes_.ranks() * each_; }
  std::size_t channels() const override;

  Bytes allocate_shared(std::size_t bytes) override;
  std::byte* peer_address(int rank, std::byte* own) override {
    return rank == this->rank() ? own : nullptr;
  }
  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override;
  bool sent(int to, std::size_t channel) override;
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override;
  bool received(int from, std::size_t channel) override;
  void arrive(std::span<const int> group, std::size_t channel) override;
  bool arrived(std::span<const int> group, std::size_t channel) override;
  void idle(int waits_for) override;
  void busy() override;
  void leave(std::optional<int> /*lost*/) override {}  // World::abort() tells the others.

 private:
  int process_of(int rank) const { return rank / each_; }
  // Returns the channel of the processes for messages from one rank to another.
  std::size_t between(std::size_t channel, int from, int to) const;
  // Returns the channel of the processes for the barriers of this rank and another one.
  std::size_t barrier_channel(std::size_t channel, int other) const;

  Transport& processes_;
  std::mutex& mutex_;
  int local_rank_, each_;
};

}  // namespace cnn::allreduce
