#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "bench/machine/backend.h"
#include "layers/all_reduce.h"

namespace cnn::tests {

// Enqueues a sum over ranks, as what runs on a GPU does.
class PlayedAllReduce final : public Kernel {
 public:
  PlayedAllReduce(const layers::AllReduce& op, const Signature& signature,
                  std::shared_ptr<StreamCommunicator> communicator)
      : op_(op), communicator_(std::move(communicator)), pieces_(signature.in.size()) {
    std::size_t elements = 0;
    for (const TensorDesc& desc : signature.in) {
      elements += desc.extent() / sizeof(float);
    }
    communicator_->prepare(op_.bucket, elements);
  }

  void run(Stream& stream, const Operands& operands) override {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (operands.out[i].data != operands.in[i].data) {
        stream.copy(operands.out[i].data, operands.in[i].data, operands.in[i].desc.bytes());
      }
      pieces_[i] = operands.out[i].as<float>();
    }
    communicator_->all_reduce(stream, op_.bucket, pieces_, op_.factor);
  }

 private:
  layers::AllReduce op_;
  std::shared_ptr<StreamCommunicator> communicator_;
  std::vector<std::span<float>> pieces_;
};

inline void add_played_exchange(KernelTable& table,
                                std::shared_ptr<StreamCommunicator> communicator) {
  table.add<layers::AllReduce>(
      [](const layers::AllReduce& /*op*/, const Signature& asked) -> std::optional<KernelSpec> {
        return KernelSpec{.in = asked.in, .out = asked.in};
      },
      [communicator = std::move(communicator)](const layers::AllReduce& op,
                                               const Signature& signature) {
        return std::make_unique<PlayedAllReduce>(op, signature, communicator);
      });
}

// A processor as a device whose memory other ranks do not see: it exchanges as GPUs do.
inline constexpr bench::DeviceExchange played_device{
    .add = add_played_exchange,
    .native = [](Stream& stream) -> void* { return &stream; },
    .look_while_waiting =
        // NOLINTNEXTLINE(performance-unnecessary-value-param): as the type wants it.
    [](Device& /*device*/, std::function<void(bool)> /*look*/) {},
    .pin = [](std::span<std::byte> memory) -> std::shared_ptr<void> {
      return {memory.data(), [](void*) {}};
    },
    .wait_for_flag =
        [](Stream& stream, std::uint32_t* flag) {
          stream.host([flag] {
            const std::atomic_ref seen(*flag);
            while (seen.load() == 0) {
              std::this_thread::yield();
            }
            if (seen.load() == 1) {
              seen.store(0);
            }
          });
        }};

}  // namespace cnn::tests
