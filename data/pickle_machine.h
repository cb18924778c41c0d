#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/pickle.h"

namespace cnn::data {

// The stack machine that a pickle is a program for. See Pickle for what it promises.
class PickleMachine {
 public:
  explicit PickleMachine(std::span<const std::byte> file) : file_(file) {}

  std::uint32_t run();  // the root
  std::vector<PickleValue> take_values() { return std::move(values_); }
  std::vector<std::vector<std::byte>> take_owned() { return std::move(owned_); }

 private:
  using Id = std::uint32_t;
  using Kind = PickleValue::Kind;
  using Instruction = void (*)(PickleMachine&);
  struct Table;

  // The file: every read is checked against its end.
  std::span<const std::byte> take(std::uint64_t bytes);
  std::uint64_t take_number(std::size_t bytes);  // little endian, at most 8
  std::string_view take_line();

  // The stack.
  Id make(PickleValue value);
  void push(Id value) { stack_.push_back(value); }
  void push_new(PickleValue value) { push(make(std::move(value))); }
  Id last() const;
  Id pop();
  std::vector<Id> pop_to_mark();
  const PickleValue& expect(Id value, Kind kind, const char* what) const;
  std::span<const std::byte> own(const std::string& bytes);

  // Values.
  void push_kind(Kind kind) { push_new({.kind = kind}); }
  void push_integer(std::int64_t number) { push_new({.kind = Kind::integer, .integer = number}); }
  void push_boolean(bool value) { push_new({.kind = Kind::boolean, .integer = value ? 1 : 0}); }
  void push_bytes(Kind kind, std::size_t length_bytes);
  void push_items(Kind kind, std::vector<Id> items);
  void push_tuple(std::size_t items);
  void push_long(std::uint64_t bytes);
  void push_function(std::string_view module, std::string_view name);
  void append(std::span<const Id> items);
  void insert(std::span<const Id> items);
  void remember(std::uint64_t slot, Id value);
  void recall(std::uint64_t slot);

  // Instructions that need more than a line.
  void text_integer();
  void text_long();
  void text_real();
  void binary_real();
  void quoted_text();
  void raw_unicode_text();
  void stack_function();
  void reduce();
  void build();

  // The few functions, as data.
  PickleValue encoded(std::span<const Id> arguments);
  PickleValue type_of(std::span<const Id> arguments) const;
  PickleValue array_from_buffer(std::span<const Id> arguments) const;
  PickleValue built_array(std::span<const Id> state) const;
  PickleValue array_of(Id shape, Id type, Id bytes) const;
  std::span<const std::byte> content(Id value, const char* what) const;

  std::span<const std::byte> file_;
  std::size_t position_ = 0;
  std::size_t owned_bytes_ = 0;
  std::vector<std::vector<std::byte>> owned_;
  std::vector<PickleValue> values_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint64_t, Id> memo_;
};

}  // namespace cnn::data
