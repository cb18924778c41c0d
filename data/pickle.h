#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

namespace cnn::data {

// One value of a pickle. Members that do not apply to its kind are empty.
struct PickleValue {
  enum class Kind : std::uint8_t { none, integer, text, list, tuple, dict, function, type, array };
  Kind kind = Kind::none;
  bool fortran = false;              // array: the first axis is the fastest
  std::int64_t integer = 0;          // integer, bool; function: its number
  std::span<const std::byte> bytes;  // text; array: elements; type: name, such as "u1"
  std::vector<std::uint32_t> items;  // list, tuple; dict: key, value, key, value, ...
  std::vector<std::int64_t> shape;   // array
  std::string_view element_type;     // array: name of the element type

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

// Parses CIFAR-10's files, and the same dictionary written by Python 3: a pickle in a binary
// protocol (2 to 5) of integers, texts, bytes, lists, tuples, dictionaries and numpy arrays. Texts
// and bytes are one kind, as in Python 2. The parser never calls anything: a function or class
// outside numpy's array format is an Error with its name. Memory is bounded by the file's size and
// by 250,000 values; nothing recurses, as values refer to each other by index.
class Pickle {
 public:
  // Throws Error without a file name.
  explicit Pickle(std::vector<std::byte> file);
  Pickle(const Pickle&) = delete;  // values point into the file
  Pickle& operator=(const Pickle&) = delete;

  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& at(std::uint32_t value) const { return values_.at(value); }
  const PickleValue* find(const PickleValue& dict,
                          std::string_view key) const;  // null: no such key

 private:
  std::vector<std::byte> file_;
  std::vector<PickleValue> values_;
  std::deque<std::vector<std::byte>> encoded_;  // bytes of values that are not in the file
  std::uint32_t root_ = 0;
};

}  // namespace cnn::data
