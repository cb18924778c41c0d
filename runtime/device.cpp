#include "runtime/device.h"

#include <array>

namespace cnn {

std::string_view name_of(Lane lane) {
  constexpr std::array<std::string_view, lane_count> names{"compute", "side",        "copy_out",
                                                           "copy_in", "communicate", "disk"};
  return names.at(static_cast<std::size_t>(lane));
}

std::unique_ptr<Recording> Device::record(std::span<Stream* const> /*streams*/,
                                          const std::function<void()>& /*enqueue*/) {
  return nullptr;
}

}  // namespace cnn
