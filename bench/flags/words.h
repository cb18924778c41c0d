#pragma once

#include <array>
#include <string_view>

namespace cnn::bench {

// How the command line and printed lines spell the values of an enum.
template <class Choice>
struct Word {
  std::string_view text;
  Choice value{};
};

// One array for each enum that is a flag. Where several words mean one value, the first is printed.
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
