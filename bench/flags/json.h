#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace cnn::bench {

// Keys stay in the order in which they were set. A nan or infinity, which JSON lacks, becomes null.
using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace cnn::bench
