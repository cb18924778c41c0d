#include "bench/flags/member.h"

#include "bench/flags/number_text.h"

namespace cnn::bench {

Plain load(bool from) { return from; }
Plain load(int from) { return std::int64_t{from}; }
Plain load(double from) { return from; }
Plain load(const std::string& from) { return from; }

Plain load(const std::vector<std::int64_t>& from) {
  std::vector<std::string> texts;
  for (const std::int64_t number : from) {
    texts.push_back(std::to_string(number));
  }
  return texts;
}

Plain load(const std::vector<double>& from) {
  std::vector<std::string> texts;
  for (const double number : from) {
    texts.push_back(shortest(number));
  }
  return texts;
}

void store(bool& to, const Plain& value) { to = std::get<bool>(value); }
void store(int& to, const Plain& value) { to = static_cast<int>(std::get<std::int64_t>(value)); }
void store(double& to, const Plain& value) { to = std::get<double>(value); }
void store(std::string& to, const Plain& value) { to = std::get<std::string>(value); }

void store(std::vector<std::int64_t>& to, const Plain& value) {
  to.clear();
  for (const std::string& text : std::get<std::vector<std::string>>(value)) {
    to.push_back(read_integer(text).value());
  }
}

void store(std::vector<double>& to, const Plain& value) {
  to.clear();
  for (const std::string& text : std::get<std::vector<std::string>>(value)) {
    to.push_back(read_float(text).value());
  }
}

}  // namespace cnn::bench
