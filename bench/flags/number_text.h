#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cnn::bench {

// Conversions between numbers and text, by the rules of upstream's command line and printed lines.

// Parse the whole text as a decimal number; nothing on junk, overflow, or (floats) infinity and
// nan.
std::optional<int> read_integer_of_32_bits(std::string_view text);
std::optional<std::int64_t> read_integer(std::string_view text);
std::optional<double> read_float(std::string_view text);

// Parses true, t, 1, false, f or 0, in any case; nothing for other words.
std::optional<bool> read_switch(std::string_view text);

// Returns fixed-point text with that many decimals. NaN has no sign: `nan`, `inf`, `-inf`.
std::string fixed(double value, int decimals);

// Returns the shortest text that parses to the same double, always recognisable as one: 1.0, 1e-05.
std::string shortest(double value);

// Returns a size in the largest binary unit that it reaches: 1.50 GiB, 12.00 MiB, 3.00 KiB, 17
// bytes.
std::string bytes_text(std::size_t bytes);

// Returns ['a', 'b'], upstream's format of word lists.
std::string quoted_list(std::span<const std::string> words);

}  // namespace cnn::bench
