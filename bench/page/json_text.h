#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "bench/compare/run.h"

namespace cnn::page {

using compare::Json;

// The value under these keys; null where one is missing.
const Json& at(const Json& json, std::initializer_list<const char*> keys);

std::optional<double> number_at(const Json& json, std::initializer_list<const char*> keys);
double number_or(const Json& json, const char* key, double otherwise);

// Strings without quotation marks, everything else as JSON writes it; empty for null.
std::string text_of(const Json& value);

}  // namespace cnn::page
