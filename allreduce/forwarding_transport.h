#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "allreduce/transport.h"

namespace cnn::allreduce {

// A decorator of a transport: forwards every call, for subclasses that change or watch some calls.
class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(Transport& transport)
      : transport_(transport) {}  // `transport` must outlive it

  int rank() const override { return transport_.rank(); }
  int ranks() const override { return transport_.ranks(); }
  std::size_t channels() const override { return transport_.channels(); }
  Bytes allocate_shared(std::size_t bytes) override { return transport_.allocate_shared(bytes); }
  std::byte* peer_address(int rank, std::byte* own) override {
    return transport_.peer_address(rank, own);
  }
  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override {
    transport_.send(to, channel, pieces);
  }
  bool sent(int to, std::size_t channel) override { return transport_.sent(to, channel); }
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override {
    transport_.receive(from, channel, at_sender, to);
  }
  bool received(int from, std::size_t channel) override {
    return transport_.received(from, channel);
  }
  void arrive(std::span<const int> group, std::size_t channel) override {
    transport_.arrive(group, channel);
  }
  bool arrived(std::span<const int> group, std::size_t channel) override {
    return transport_.arrived(group, channel);
  }
  void idle(int waits_for) override { transport_.idle(waits_for); }
  void busy() override { transport_.busy(); }
  void leave(std::optional<int> lost) override { transport_.leave(lost); }
  Progress* progress() override { return transport_.progress(); }
  std::uint64_t progress_of(int rank) override { return transport_.progress_of(rank); }
  void publish(const Progress& source) override { transport_.publish(source); }

 private:
  Transport& transport_;
};

}  // namespace cnn::allreduce
