#include "bench/page/json_text.h"

namespace cnn::page {

const Json& at(const Json& json, std::initializer_list<const char*> keys) {
  static const Json nothing;
  const Json* found = &json;
  for (const char* key : keys) {
    if (!found->is_object() || !found->contains(key)) {
      return nothing;
    }
    found = &found->at(key);
  }
  return *found;
}

std::optional<double> number_at(const Json& json, std::initializer_list<const char*> keys) {
  const Json& found = at(json, keys);
  return found.is_number() ? std::optional(found.get<double>()) : std::nullopt;
}

double number_or(const Json& json, const char* key, double otherwise) {
  return number_at(json, {key}).value_or(otherwise);
}

bool is_true(const Json& json, const char* key) {
  const Json& found = at(json, {key});
  return found.is_boolean() && found.get<bool>();
}

std::string text_of(const Json& value) {
  if (value.is_null()) {
    return {};
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace cnn::page
