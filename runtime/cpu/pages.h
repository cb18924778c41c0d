#pragma once

#include <cstddef>

#include "runtime/device.h"

namespace cnn {

struct HostBytes {
  std::byte* data = nullptr;  // null: there is no memory
  Buffer::Release release;
};

// Allocates memory that is aligned to 64 bytes. A page or more is zeroed and lies between guard
// pages: an access behind its last 64 bytes ends the program. From 2 MiB on the memory uses huge
// pages where the kernel has them. The function touches no page: the first write decides the NUMA
// node of a page.
HostBytes allocate_pages(std::size_t bytes);

}  // namespace cnn
