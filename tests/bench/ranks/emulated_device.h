#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "bench/machine/backend.h"
#include "layers/stream_exchange.h"

namespace cnn::tests {

// Emulates a device whose memory other ranks cannot see, so that it exchanges like a GPU.
inline constexpr bench::DeviceExchange emulated_device{
    .add = layers::add_stream_exchange,
    .native = [](Stream& stream) -> void* { return &stream; },
    .on_poll =
        // NOLINTNEXTLINE(performance-unnecessary-value-param): the type of on_poll requires it.
    [](Device& /*device*/, std::function<void(bool)> /*look*/) {},
    .pin = [](std::span<std::byte> memory) -> std::shared_ptr<void> {
      return {memory.data(), [](void*) {}};
    },
    .wait_for_flag =
        [](Stream& stream, std::uint32_t* flag) {
          stream.host([flag] {
            const std::atomic_ref done(flag[0]), failed(flag[1]);
            while (done.load() == 0 && failed.load() == 0) {
              std::this_thread::yield();
            }
            done.store(0);
          });
        }};

}  // namespace cnn::tests
