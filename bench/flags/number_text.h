#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cnn::bench {

// Numbers between text and memory, both ways, by the rules of the original's command line and of
// its printed lines.

// The whole text as a decimal number; nothing on junk, overflow, or (floats) infinity and nan.
std::optional<int> read_integer_of_32_bits(std::string_view text);
std::optional<std::int64_t> read_integer(std::string_view text);
std::optional<double> read_float(std::string_view text);

// true, t, 1, false, f or 0, in any case; nothing for other words.
std::optional<bool> read_switch(std::string_view text);

// Fixed-point with that many decimals. Not-a-number has no sign: `nan`, `inf`, `-inf`.
std::string fixed(double value, int decimals);

// The shortest text that reads back as the same double, always recognisable as one: 1.0, 1e-05.
std::string shortest(double value);

// Memory for a reader, in the largest unit of which there is one: 1.50 GiB, 12.00 MiB, 3.00 KiB, 17
// bytes.
std::string bytes_text(std::size_t bytes);

// ['a', 'b']: how the original prints lists of words.
std::string quoted_list(std::span<const std::string> words);

}  // namespace cnn::bench
