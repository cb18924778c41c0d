#include "data/pickle_text.h"

#include <cstdint>

namespace cnn::data {
namespace {

void append_utf8(std::string& text, std::uint32_t letter) {
  check(letter < 0x110000, "a character beyond Unicode");
  const auto put = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (letter < 0x80) {
    put(letter);
  } else if (letter < 0x800) {
    put(0xC0 | (letter >> 6));
    put(0x80 | (letter & 0x3F));
  } else if (letter < 0x10000) {
    put(0xE0 | (letter >> 12));
    put(0x80 | ((letter >> 6) & 0x3F));
    put(0x80 | (letter & 0x3F));
  } else {
    put(0xF0 | (letter >> 18));
    put(0x80 | ((letter >> 12) & 0x3F));
    put(0x80 | ((letter >> 6) & 0x3F));
    put(0x80 | (letter & 0x3F));
  }
}

// The escapes of a Python string literal; `rest` starts after the backslash and loses what is used.
char unescape(std::string_view& rest) {
  check(!rest.empty(), "a text ends within an escape");
  constexpr std::string_view letters = "\\'\"abfnrtv";
  constexpr std::string_view meanings = "\\'\"\a\b\f\n\r\t\v";
  const char letter = rest.front();
  if (const std::size_t at = letters.find(letter); at != std::string_view::npos) {
    rest.remove_prefix(1);
    return meanings[at];
  }
  check(letter == 'x' && rest.size() >= 3, "a text has an unknown escape");
  const auto value = parse_number<std::uint8_t>(rest.substr(1, 2), 16);
  rest.remove_prefix(3);
  return static_cast<char>(value);
}

}  // namespace

std::string decode_raw_unicode(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size();) {
    const bool escape =
        line[i] == '\\' && i + 1 < line.size() && (line[i + 1] == 'u' || line[i + 1] == 'U');
    if (!escape) {
      append_utf8(text, static_cast<unsigned char>(line[i++]));
      continue;
    }
    const std::size_t digits = line[i + 1] == 'u' ? 4 : 8;
    check(line.size() - i - 2 >= digits, "a text ends within an escape");
    append_utf8(text, parse_number<std::uint32_t>(line.substr(i + 2, digits), 16));
    i += 2 + digits;
  }
  return text;
}

std::string decode_quoted(std::string_view line) {
  check(line.size() >= 2 && line.front() == line.back() &&
            (line.front() == '\'' || line.front() == '"'),
        "a text without its quotes");
  std::string text;
  for (std::string_view rest = line.substr(1, line.size() - 2); !rest.empty();) {
    const char letter = rest.front();
    rest.remove_prefix(1);
    text += letter == '\\' ? unescape(rest) : letter;
  }
  return text;
}

std::string decode_latin1(std::string_view utf8) {
  std::string text;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    if (byte < 0x80) {
      text += utf8[i];
      continue;
    }
    const bool pair = (byte == 0xC2 || byte == 0xC3) && i + 1 < utf8.size() &&
                      (static_cast<unsigned char>(utf8[i + 1]) & 0xC0) == 0x80;
    check(pair, "a text that stands for bytes has a character beyond 255");
    text += static_cast<char>(((byte & 3) << 6) | (static_cast<unsigned char>(utf8[++i]) & 0x3F));
  }
  return text;
}

}  // namespace cnn::data
