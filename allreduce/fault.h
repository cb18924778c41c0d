#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "allreduce/forwarding_transport.h"

namespace cnn::allreduce {

// A fault that is injected into one rank, to test how the others react.
struct Fault {
  enum class Kind : std::uint8_t {
    exit,    // its process ends with status 1 without a notice
    kill,    // SIGKILL
    stop,    // SIGSTOP
    delay,   // it sleeps for `delay`
    corrupt  // corrupts its result, so that it differs from the others'
  };
  Kind kind = Kind::kill;
  int rank = 0;
  std::size_t bucket = 0;
  std::size_t step = 1;   // the number of the rank's reduction of this bucket, from 1
  std::size_t after = 0;  // after so many messages and barriers, or at the end
  std::chrono::milliseconds delay{};
};

// A transport that injects the fault into its rank.
class FaultyTransport final : public ForwardingTransport {
 public:
  FaultyTransport(Transport& transport, const Fault& fault)
      : ForwardingTransport(transport), fault_(fault) {}

  // The rank begins or ends a reduction; pieces: its result.
  void begin(std::size_t bucket);
  void end(std::span<const std::span<float>> pieces);

  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override;
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override;
  void arrive(std::span<const int> group, std::size_t channel) override;

 private:
  void count();   // counts a message or barrier
  void inject();  // all kinds but Kind::corrupt

  Fault fault_;
  std::size_t times_ = 0;   // reductions of the bucket so far
  std::size_t posted_ = 0;  // messages and barriers of this reduction
  bool due_ = false;
};

}  // namespace cnn::allreduce
