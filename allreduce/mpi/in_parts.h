#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace cnn::allreduce {

// Calls call(part) for consecutive parts of the values, which have at most `most` elements each.
template <class Call>
void in_parts(std::span<float> values, std::size_t most, const Call& call) {
  while (!values.empty()) {
    const std::span<float> part = values.first(std::min(values.size(), most));
    call(part);
    values = values.subspan(part.size());
  }
}

}  // namespace cnn::allreduce
