#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "tests/support/grid/address_check.h"

namespace cnn::tests::emulated {

// While it exists, kernels on the calling thread may touch only one device's memory and pinned host
// memory. `values`: the kernel's parameters, which it may read.
class CheckedAddresses final : public grid::AddressCheck {
 public:
  CheckedAddresses(int device, std::span<const std::byte> values);
  ~CheckedAddresses() override;
  CheckedAddresses(const CheckedAddresses&) = delete;
  CheckedAddresses& operator=(const CheckedAddresses&) = delete;

  std::string why_not(const std::byte* at, std::size_t bytes, grid::Access access) override;

 private:
  using Range = std::span<const std::byte>;
  static bool contains(Range range, const std::byte* at, std::size_t bytes);
  std::string look_up(const std::byte* at, std::size_t bytes);

  static constexpr std::size_t lasting = 3;  // the first entries are permanent

  int device_;
  std::array<Range, 8> allowed_{};  // also caches recently found ranges
  std::size_t next_ = 0;
};

}  // namespace cnn::tests::emulated
