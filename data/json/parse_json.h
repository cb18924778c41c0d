#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/error.h"

namespace cnn::data {

// Text that is no JSON. what() says at which line and column and why, but not in which file.
class JsonError final : public Error {
 public:
  JsonError(const std::string& what, bool cut_off) : Error(what), cut_off_(cut_off) {}
  // Whether the text ends too early, as the file of a program that was killed.
  bool cut_off() const { return cut_off_; }

 private:
  bool cut_off_ = false;
};

// Every reader of JSON goes through here. Throws JsonError for text that is no JSON, that is nested
// more deeply than 64 levels (what walks over values recurses), or that holds a number beyond the
// range of a double. Json is nlohmann::json or nlohmann::ordered_json. `examine`, if given, sees
// each value while it is parsed, and what it throws comes through.
template <class Json>
Json parse_json(std::string_view text, const typename Json::parser_callback_t& examine = nullptr);

extern template nlohmann::json parse_json<nlohmann::json>(std::string_view,
                                                          const nlohmann::json::parser_callback_t&);
extern template nlohmann::ordered_json parse_json<nlohmann::ordered_json>(
    std::string_view, const nlohmann::ordered_json::parser_callback_t&);

}  // namespace cnn::data
