#pragma once

#include <cstddef>
#include <string>

#include "tests/support/grid/grid.h"

namespace cnn::tests::grid {

// Decides which memory the threads of a launch may touch besides their stacks and shared memory.
class AddressCheck {
 public:
  virtual ~AddressCheck() = default;
  // Returns why a thread may not make this access, or "" if it may.
  virtual std::string why_not(const std::byte* at, std::size_t bytes, Access access) = 0;
};

// Sets the check for launches on this thread of the program. Null, the default, allows every
// access.
void set_address_check(AddressCheck* check);
AddressCheck* address_check();

}  // namespace cnn::tests::grid
