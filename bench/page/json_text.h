#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "bench/compare/run.h"

namespace cnn::page {

using compare::Json;

// Returns the value at this path of keys; null if one is missing.
const Json& at(const Json& json, std::initializer_list<const char*> keys);

std::optional<double> number_at(const Json& json, std::initializer_list<const char*> keys);
double number_or(const Json& json, const char* key, double otherwise);

// Returns whether the key has the value true; any other value counts as false.
bool is_true(const Json& json, const char* key);

// Returns strings without quotation marks, other values in JSON syntax; empty for null.
std::string text_of(const Json& value);

}  // namespace cnn::page
