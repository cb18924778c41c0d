#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cnn::data {

// One value of a pickle. What a kind does not use stays empty.
struct PickleValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    bytes,
    list,
    tuple,
    dict,
    function,
    type,
    array,
    mark
  };
  Kind kind = Kind::none;
  bool fortran = false;              // array: the first axis is the fastest
  std::int64_t integer = 0;          // boolean, integer; function: which one
  double real = 0;                   // real
  std::span<const std::byte> bytes;  // text (UTF-8), bytes; array: its elements; type: as "u1"
  std::vector<std::uint32_t> items;  // list, tuple; dict: key, value, key, value, ...
  std::vector<std::int64_t> shape;   // array
  std::uint32_t element_type = 0;    // array: its type

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

// Reads what Python's pickle writes (protocols 0 to 5), as far as it is plain data or a numpy
// array. Nothing is ever called: any other function or class that the file asks for is an Error
// that names it. Memory is bounded by the file's size and by 250,000 values; nothing recurses, as
// values refer to each other by number.
class Pickle {
 public:
  // Throws Error without a file name.
  explicit Pickle(std::vector<std::byte> file);
  Pickle(const Pickle&) = delete;  // values point into the file
  Pickle& operator=(const Pickle&) = delete;

  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& at(std::uint32_t value) const { return values_.at(value); }
  // The value of that key, whether Python 2 or 3 wrote it as bytes or text; nullptr: no such key,
  // or no dict.
  const PickleValue* find(const PickleValue& dict, std::string_view key) const;

 private:
  std::vector<std::byte> file_;
  std::vector<std::vector<std::byte>> owned_;  // bytes that do not stand in the file as they are
  std::vector<PickleValue> values_;
  std::uint32_t root_ = 0;
};

}  // namespace cnn::data
