#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace cnn::bench {

// Keys keep their insertion order. NaN and infinity, which JSON lacks, become null.
using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace cnn::bench
