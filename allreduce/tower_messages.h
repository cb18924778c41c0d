#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <span>

#include "allreduce/transport.h"

namespace cnn::allreduce {

// Messages of one of several ranks that are threads of a process, over the transport of processes
// that they share: any two ranks have channels of their own there. Ranks are numbered process after
// process. They do not meet on this way: those who do share memory.
class TowerMessages final : public Transport {
 public:
  // each: ranks in every process, of which this is number `place` in its own. turn: of those who
  // wait. processes: its channels are divided among each * each pairs of ranks. Both must outlive
  // it.
  TowerMessages(Transport& processes, std::mutex& turn, int place, int each)
      : processes_(processes), turn_(turn), place_(place), each_(each) {}

  int rank() const override { return processes_.rank() * each_ + place_; }
  int ranks() const override { return processes_.ranks() * each_; }
  std::size_t channels() const override;

  Bytes room(std::size_t bytes) override;
  std::byte* in_sight(int rank, std::byte* own) override {
    return rank == this->rank() ? own : nullptr;
  }
  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override;
  bool sent(int to, std::size_t channel) override;
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override;
  bool received(int from, std::size_t channel) override;
  void come(std::span<const int> /*group*/, std::size_t /*channel*/) override {}
  bool have_come(std::span<const int> group, std::size_t channel) override;
  void idle(int waits_for) override;
  void busy() override;
  void leave(std::optional<int> /*lost*/) override {}  // World::give_up() tells why

 private:
  int process_of(int rank) const { return rank / each_; }
  // For messages from one place in a process to another place in another process.
  std::size_t between(std::size_t channel, int from, int to) const;

  Transport& processes_;
  std::mutex& turn_;
  int place_, each_;
};

}  // namespace cnn::allreduce
