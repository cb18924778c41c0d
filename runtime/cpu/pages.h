#pragma once

#include <cstddef>

#include "runtime/device.h"

namespace cnn {

struct HostBytes {
  std::byte* data = nullptr;  // null: there is no memory
  Buffer::Release release;
};

// Memory that is aligned to 64 bytes, zero where it is a page or more. That much lies between pages
// which nobody may touch: what is read or written behind its last 64 bytes ends the program. From
// 2 MiB on it is in huge pages where the kernel has them. Not touched: the first to write decides
// on which memory node a page lies.
HostBytes allocate_pages(std::size_t bytes);

}  // namespace cnn
