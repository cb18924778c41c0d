#pragma once

#include <string_view>

namespace cnn::bench {

// Writes the whole text, however often the system takes only a part of it. Returns 0, or the errno
// of what stopped it.
int write_all(int descriptor, std::string_view text);

}  // namespace cnn::bench
