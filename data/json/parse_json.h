#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/error.h"

namespace cnn::data {

// The error of text that is not JSON or not readable. what() states line, column and reason, but
// not the file.
class JsonError final : public Error {
 public:
  JsonError(const std::string& what, bool cut_off) : Error(what), cut_off_(cut_off) {}
  // Returns whether the text ends early, like the file of a killed program.
  bool cut_off() const { return cut_off_; }

 private:
  bool cut_off_ = false;
};

// The only JSON parser of the project. Throws JsonError for text that is not JSON, is nested deeper
// than 64 levels (code that walks values recurses), or has a number beyond the range of a double or
// a key twice in one object (the parser would keep one of the values silently).
// Json is nlohmann::json or nlohmann::ordered_json. `examine`, if given, sees each value during
// parsing; its exceptions propagate.
template <class Json>
Json parse_json(std::string_view text, const typename Json::parser_callback_t& examine = nullptr);

extern template nlohmann::json parse_json<nlohmann::json>(std::string_view,
                                                          const nlohmann::json::parser_callback_t&);
extern template nlohmann::ordered_json parse_json<nlohmann::ordered_json>(
    std::string_view, const nlohmann::ordered_json::parser_callback_t&);

}  // namespace cnn::data
