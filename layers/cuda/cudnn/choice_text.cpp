#include "layers/cuda/cudnn/choice_text.h"

#include <charconv>

namespace cnn::layers::cuda {
namespace {

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

// Removes the text before the separator, and the separator, from the front of the text and returns
// it.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

std::string knobs_text(const std::vector<Choice::Knob>& knobs) {
  std::string text;
  for (const Choice::Knob& knob : knobs) {
    text +=
        (text.empty() ? "" : ",") + std::to_string(knob.type) + "=" + std::to_string(knob.value);
  }
  return text.empty() ? "-" : text;
}

bool read_knobs(std::string_view text, std::vector<Choice::Knob>& into) {
  if (text == "-") {
    return true;
  }
  while (!text.empty()) {
    std::string_view value = take_part(text, ',');
    const std::string_view type = take_part(value, '=');
    Choice::Knob knob;
    if (!read_number(type, knob.type) || !read_number(value, knob.value)) {
      return false;
    }
    into.push_back(knob);
  }
  return !into.empty();
}

}  // namespace

std::string choice_fields(const Choice& choice) {
  return std::to_string(choice.engine) + '\t' + knobs_text(choice.knobs) + '\t' +
         std::to_string(choice.workspace);
}

bool read_choice_fields(std::string_view text, Choice& into) {
  const std::string_view engine = take_part(text, '\t');
  const std::string_view knobs = take_part(text, '\t');
  return read_number(engine, into.engine) && read_knobs(knobs, into.knobs) &&
         read_number(text, into.workspace);
}

}  // namespace cnn::layers::cuda
