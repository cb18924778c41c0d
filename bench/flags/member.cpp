#include "bench/flags/member.h"

#include <algorithm>
#include <cstddef>

#include "bench/flags/number_text.h"
#include "runtime/error.h"
#include "runtime/spelling.h"

namespace cnn::bench {
namespace {

constexpr const char* automatic_wire = "auto";

std::string count_or_auto(std::optional<int> count) {
  return count ? std::to_string(*count) : "auto";
}

std::optional<int> slices_of(const std::string& flag, const std::string& text) {
  const std::optional<int> count = read_integer_of_32_bits(text);
  check(text == "auto" || (count && *count >= 1 && *count <= max_slices),
        flag + "=" + text + ": it takes auto, or a whole number from 1 to " +
            std::to_string(max_slices));
  return text == "auto" ? std::nullopt : count;
}

}  // namespace

Plain load(bool from) { return from; }
Plain load(int from) { return std::int64_t{from}; }
Plain load(std::int64_t from) { return from; }
Plain load(double from) { return from; }
Plain load(const std::string& from) { return from; }

Plain load(const std::vector<std::int64_t>& from) {
  std::vector<std::string> texts;
  texts.reserve(from.size());
  for (const std::int64_t number : from) {
    texts.push_back(std::to_string(number));
  }
  return texts;
}

Plain load(const std::vector<double>& from) {
  std::vector<std::string> texts;
  texts.reserve(from.size());
  for (const double number : from) {
    texts.push_back(shortest(number));
  }
  return texts;
}

Plain load(layers::Rule from) { return std::string(layers::row_of(from).name); }

Plain load(lms::SyncMode from) { return std::int64_t{static_cast<std::uint8_t>(from)}; }

Plain load(const std::optional<allreduce::Wire>& from) {
  return from ? std::string(word_of(*from)) : automatic_wire;
}

Plain load(const data::Row* from) { return from == nullptr ? Plain() : std::string(from->name); }

Plain load(const models::RatePieces& from) {
  std::string text = shortest(from.rates.at(0));
  for (std::size_t i = 0; i < from.epochs.size(); ++i) {
    text += ";" + std::to_string(from.epochs[i]) + ";" + shortest(from.rates.at(i + 1));
  }
  return text;
}

Plain load(const BatchSlices& from) { return count_or_auto(from.count); }
Plain load(const RowSlices& from) { return count_or_auto(from.count); }
Plain load(const DenseSlices& from) { return count_or_auto(from.count); }

Plain load(const std::vector<std::string>& from) { return from; }

void store(bool& to, const Plain& value) { to = std::get<bool>(value); }
void store(int& to, const Plain& value) { to = static_cast<int>(std::get<std::int64_t>(value)); }
void store(std::int64_t& to, const Plain& value) { to = std::get<std::int64_t>(value); }
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

void store(layers::Rule& to, const Plain& value) {
  to = layers::find_rule(std::get<std::string>(value)).rule;
}

void store(lms::SyncMode& to, const Plain& value) {
  to = static_cast<lms::SyncMode>(std::get<std::int64_t>(value));
}

void store(std::optional<allreduce::Wire>& to, const Plain& value) {
  to.reset();
  if (std::get<std::string>(value) != automatic_wire) {
    store(to.emplace(), value);
  }
}

void store(const data::Row*& to, const Plain& value) {
  const auto* const name = std::get_if<std::string>(&value);
  if (name == nullptr) {
    to = nullptr;
    return;
  }
  std::vector<std::string> known;
  for (const data::Row& row : data::catalog()) {
    known.emplace_back(row.name);
  }
  check(std::ranges::find(known, *name) != known.end(),
        "--data_name=" + *name + ": there is no such data set; use " + data::names(data::can_run) +
            did_you_mean(*name, known));
  to = &data::find(*name);
}

void store(models::RatePieces& to, const Plain& value) {
  to = models::read_pieces(std::get<std::string>(value));
}

void store(BatchSlices& to, const Plain& value) {
  to.count = slices_of("--lms_slices", std::get<std::string>(value));
}

void store(RowSlices& to, const Plain& value) {
  to.count = slices_of("--lms_row_slices", std::get<std::string>(value));
}

void store(DenseSlices& to, const Plain& value) {
  to.count = slices_of("--lms_dense_slices", std::get<std::string>(value));
}

template <>
std::vector<std::string> words_for<layers::Rule>() {
  std::vector<std::string> names;
  for (const layers::RuleRow& row : layers::rules()) {
    names.emplace_back(row.name);
  }
  return names;
}

template <>
std::vector<std::string> words_for<std::optional<allreduce::Wire>>() {
  std::vector<std::string> texts = words_for<allreduce::Wire>();
  texts.insert(texts.begin(), automatic_wire);
  return texts;
}

void store(std::vector<std::string>& to, const Plain& value) {
  to = std::get<std::vector<std::string>>(value);
}

}  // namespace cnn::bench
