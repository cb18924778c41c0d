#pragma once

#include <array>
#include <string_view>

namespace cnn::bench {

// The spelling of an enum value on the command line and in printed lines.
template <class Choice>
struct Word {
  std::string_view text;
  Choice value{};
};

// One array for each enum of a flag. If several words have one value, the first is printed.
template <class Choice>
inline constexpr std::array<Word<Choice>, 0> words{};

template <class Choice>
constexpr std::string_view word_of(Choice value) {
  static_assert(!words<Choice>.empty(), "this type has no words");
  for (const Word<Choice>& word : words<Choice>) {
    if (word.value == value) {
      return word.text;
    }
  }
  return "";
}

}  // namespace cnn::bench
