#include "tests/layers/cuda/device_runner.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/error.h"

namespace cnn::tests {
namespace {

constexpr std::size_t guard_bytes = 256;
constexpr std::byte guard{0xA5}, poison{0xFF};

void check_guard(std::span<const std::byte> guard_now, std::size_t bytes) {
  check(std::ranges::all_of(guard_now, [](std::byte b) { return b == guard; }),
        "a kernel wrote past the end of an operand of " + std::to_string(bytes) + " bytes");
}

// A copy of host bytes on the device with a guard region behind it.
class Guest {
 public:
  Guest(Device& device, Stream& stream, std::byte* host, std::size_t bytes)
      : stream_(stream),
        host_(host),
        bytes_(bytes),
        there_(device.allocate(bytes + guard_bytes)),
        image_(bytes + guard_bytes, guard) {
    std::copy_n(host_, bytes_, image_.begin());
    stream_.copy(there_.data(), image_.data(), image_.size());
  }

  std::byte* data() const { return there_.data(); }

  void fetch() { stream_.copy(image_.data(), there_.data(), image_.size()); }

  // Call after fetch() and a synchronisation.
  void settle() const {
    check_guard(std::span(image_).last(guard_bytes), bytes_);
    std::copy_n(image_.begin(), bytes_, host_);
  }

 private:
  Stream& stream_;
  std::byte* host_;
  std::size_t bytes_;
  Buffer there_;
  std::vector<std::byte> image_;
};

// Device memory filled with NaN, with a guard region behind it. It has no copy on the host, because
// a matrix product takes 32 MiB of it.
class Scratch {
 public:
  Scratch(Device& device, Stream& stream, std::size_t bytes)
      : stream_(stream),
        bytes_(bytes),
        there_(device.allocate(bytes + guard_bytes)),
        poison_(std::min(bytes, max_at_once), poison),
        guard_(guard_bytes, guard) {
    for (std::size_t at = 0; at < bytes; at += poison_.size()) {
      stream_.copy(there_.data() + at, poison_.data(), std::min(poison_.size(), bytes - at));
    }
    stream_.copy(there_.data() + bytes, guard_.data(), guard_bytes);
  }

  std::byte* data() const { return there_.data(); }

  void fetch_guard() { stream_.copy(guard_.data(), there_.data() + bytes_, guard_bytes); }

  // Call after fetch_guard() and a synchronisation.
  void settle() const { check_guard(guard_, bytes_); }

 private:
  static constexpr std::size_t max_at_once = std::size_t{1} << 20U;

  Stream& stream_;
  std::size_t bytes_;
  Buffer there_;
  std::vector<std::byte> poison_, guard_;
};

class DeviceKernel final : public Kernel {
 public:
  DeviceKernel(std::unique_ptr<Kernel> kernel, Device& device)
      : kernel_(std::move(kernel)), device_(device) {}

  void run(Stream& /*host stream*/, const Operands& operands) override {
    const std::unique_ptr<Stream> stream = device_.make_stream(Lane::compute);
    std::map<std::byte*, Guest> guests;
    const auto invite = [&](const TensorView& view) {
      const auto [guest, is_new] =
          guests.try_emplace(view.data, device_, *stream, view.data, view.desc.extent());
      return TensorView{view.desc, guest->second.data()};
    };
    Operands there;
    std::ranges::transform(operands.in, std::back_inserter(there.in), invite);
    std::ranges::transform(operands.out, std::back_inserter(there.out), invite);
    Scratch workspace(device_, *stream, operands.workspace.size());
    there.workspace = {workspace.data(), operands.workspace.size()};
    kernel_->run(*stream, there);
    workspace.fetch_guard();
    for (auto& [host, guest] : guests) {
      guest.fetch();
    }
    stream->synchronize();
    workspace.settle();
    for (auto& [host, guest] : guests) {
      guest.settle();
    }
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  Device& device_;
};

}  // namespace

KernelTable on_device(const KernelTable& table, Device& device) {
  KernelTable result;
  result.otherwise(
      [&table](const Op& op, const Signature& request) { return table.describe(op, request); },
      [&table, &device](const Op& op, const Signature& signature) {
        return std::make_unique<DeviceKernel>(table.make(op, signature), device);
      });
  return result;
}

}  // namespace cnn::tests
