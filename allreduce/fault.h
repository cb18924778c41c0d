#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "allreduce/transport.h"

namespace cnn::allreduce {

// What befalls one rank, so that a test can see how the others take it.
struct Fault {
  enum class What : std::uint8_t {
    exit,    // its process ends with 1 and tells nobody
    kill,    // by SIGKILL
    stop,    // by SIGSTOP
    delay,   // it sleeps
    corrupt  // its result differs from that of the others
  };
  What what = What::kill;
  int rank = 0;
  std::size_t bucket = 0;
  std::size_t step = 1;   // of the rank's reductions of this bucket, from 1 on
  std::size_t after = 0;  // so many messages and meetings of it, or at its end if it has fewer
  std::chrono::milliseconds delay{};
};

// The way of that rank to all others, on which the fault comes over it.
class FaultyTransport final : public Transport {
 public:
  FaultyTransport(Transport& transport, const Fault& fault)
      : transport_(transport), fault_(fault) {}  // the transport must outlive it

  void begin(std::size_t bucket);                      // of a reduction
  void end(std::span<const std::span<float>> pieces);  // with this result

  int rank() const override { return transport_.rank(); }
  int ranks() const override { return transport_.ranks(); }
  std::size_t channels() const override { return transport_.channels(); }
  Bytes room(std::size_t bytes) override { return transport_.room(bytes); }
  std::byte* in_sight(int rank, std::byte* own) override { return transport_.in_sight(rank, own); }
  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override;
  bool sent(int to, std::size_t channel) override { return transport_.sent(to, channel); }
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override;
  bool received(int from, std::size_t channel) override {
    return transport_.received(from, channel);
  }
  void come(std::size_t channel) override;
  bool have_come(std::span<const int> group, std::size_t channel) override {
    return transport_.have_come(group, channel);
  }
  void idle(int waits_for) override { transport_.idle(waits_for); }
  void busy() override { transport_.busy(); }
  void leave(std::optional<int> lost) override { transport_.leave(lost); }

 private:
  void count();   // one more message or meeting
  void strike();  // what a process can do to itself

  Transport& transport_;
  Fault fault_;
  std::size_t times_ = 0;   // that the bucket's reduction has begun
  std::size_t posted_ = 0;  // in this one
  bool due_ = false;
};

}  // namespace cnn::allreduce
