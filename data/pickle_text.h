#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

#include "data/file.h"
#include "runtime/error.h"

namespace cnn::data {

// How the text protocols of pickle write numbers and strings. All throw on anything else.

template <class Number>
Number parse_number(std::string_view text, int base = 10) {
  Number number{};
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<Number>) {
    result = std::from_chars(text.data(), text.data() + text.size(), number);
  } else {
    result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  }
  check(result.ec == std::errc() && result.ptr == text.data() + text.size() && !text.empty(),
        std::string("'").append(printable(text)) + "' is no number that fits");
  return number;
}

// Python's raw-unicode-escape: Latin-1, with \uXXXX and \UXXXXXXXX for the rest. Gives UTF-8.
std::string decode_raw_unicode(std::string_view line);
// The repr of a Python 2 string: quoted, with escapes.
std::string decode_quoted(std::string_view line);
// UTF-8 whose characters stand for bytes.
std::string decode_latin1(std::string_view utf8);

}  // namespace cnn::data
