#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "allreduce/forwarding_transport.h"

namespace cnn::allreduce {

// A fault of one rank, so that a test can see how the others take it.
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
class FaultyTransport final : public ForwardingTransport {
 public:
  FaultyTransport(Transport& transport, const Fault& fault)
      : ForwardingTransport(transport), fault_(fault) {}

  void begin(std::size_t bucket);                      // of a reduction
  void end(std::span<const std::span<float>> pieces);  // with this result

  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override;
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override;
  void come(std::span<const int> group, std::size_t channel) override;

 private:
  void count();   // one more message or meeting
  void strike();  // what a process can do to itself

  Fault fault_;
  std::size_t times_ = 0;   // that the bucket's reduction has begun
  std::size_t posted_ = 0;  // in this one
  bool due_ = false;
};

}  // namespace cnn::allreduce
