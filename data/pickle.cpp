#include "data/pickle.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

#include "data/file.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

using Id = std::uint32_t;
using Kind = PickleValue::Kind;

constexpr std::size_t max_values = 250'000;  // a batch of CIFAR-10 has 20,000

enum class Function : std::uint8_t { reconstruct, ndarray, dtype, from_buffer, encode };
struct FunctionRow {
  std::string_view module, name;
  Function function;
};
// Module names of numpy before version 2, and since.
constexpr std::array<FunctionRow, 7> functions{
    {{"numpy.core.multiarray", "_reconstruct", Function::reconstruct},
     {"numpy._core.multiarray", "_reconstruct", Function::reconstruct},
     {"numpy", "ndarray", Function::ndarray},
     {"numpy", "dtype", Function::dtype},
     {"numpy.core.numeric", "_frombuffer", Function::from_buffer},
     {"numpy._core.numeric", "_frombuffer", Function::from_buffer},
     {"_codecs", "encode", Function::encode}}};

// The stack machine that executes a pickle, as documented in Python's pickletools.
class Machine {
 public:
  explicit Machine(std::span<const std::byte> file) : file_(file) {}

  Id run();  // returns the root
  std::vector<PickleValue> take_values() { return std::move(values_); }
  std::deque<std::vector<std::byte>> take_encoded() { return std::move(encoded_); }

 private:
  // Each handles its opcodes; false: the opcode belongs to another function.
  bool run_number(unsigned char code);
  bool run_text(unsigned char code);
  bool run_container(unsigned char code);
  bool run_memo(unsigned char code);
  bool run_object(unsigned char code);

  // Reading the file, with every read checked against its end.
  std::span<const std::byte> take(std::uint64_t bytes);
  std::uint64_t take_number(std::size_t bytes);  // little endian, at most 8
  std::string_view take_line();

  // Stack operations.
  bool push_new(PickleValue value);  // always true, for the callers
  bool push_integer(std::int64_t number) {
    return push_new({.kind = Kind::integer, .integer = number});
  }
  bool push_long(std::uint64_t bytes);
  bool push_text(std::size_t length_bytes);
  bool push_tuple(std::size_t items);
  bool push_function(std::string_view module, std::string_view name);
  Id last() const;
  Id pop();
  std::vector<Id> pop_to_mark();
  const PickleValue& expect(Id value, Kind kind, const char* what) const;

  bool append(Kind kind, const std::vector<Id>& items);
  bool remember(std::uint64_t slot);
  bool recall(std::uint64_t slot);

  // The few known functions, as data.
  bool reduce();
  bool build();
  PickleValue type_of(std::span<const Id> arguments) const;
  PickleValue array_of(Id shape, Id type, Id bytes) const;
  PickleValue encoded(std::span<const Id> arguments);

  std::span<const std::byte> file_;
  std::size_t position_ = 0;
  std::vector<PickleValue> values_;
  std::deque<std::vector<std::byte>> encoded_;  // bytes that the file does not hold as they are
  std::size_t encoded_bytes_ = 0;               // read for them
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // stack heights
  std::unordered_map<std::uint64_t, Id> memo_;
};

Id Machine::run() {
  while (true) {
    const std::size_t start = position_;
    const auto code = static_cast<unsigned char>(take(1).front());
    if (code == '.') {
      check(position_ == file_.size(), "the pickle ends before its file does");
      return pop();
    }
    const bool known = run_number(code) || run_text(code) || run_container(code) ||
                       run_memo(code) || run_object(code);
    check(known, "pickle opcode " + std::to_string(code) + " at byte " + std::to_string(start) +
                     " is no plain data in a binary protocol; in Python 3, pickle.dump(dictionary, "
                     "file) writes one that is read here");
  }
}

bool Machine::run_number(unsigned char code) {
  switch (code) {
    case 'N':
      return push_new({});
    case 0x88:
    case 0x89:
      return push_integer(code == 0x88 ? 1 : 0);
    case 'J':
      return push_integer(static_cast<std::int32_t>(take_number(4)));
    case 'K':
      return push_integer(static_cast<int>(take_number(1)));
    case 'M':
      return push_integer(static_cast<int>(take_number(2)));
    case 0x8a:
      return push_long(take_number(1));
    default:
      return false;
  }
}

bool Machine::run_text(unsigned char code) {
  switch (code) {
    case 'U':
    case 'C':
    case 0x8c:
      return push_text(1);
    case 'T':
    case 'B':
    case 'X':
      return push_text(4);
    case 0x8d:
    case 0x8e:
    case 0x96:
      return push_text(8);
    default:
      return false;
  }
}

bool Machine::run_container(unsigned char code) {
  switch (code) {
    case '(':
      check(marks_.size() < max_values, "the pickle has more than 250000 open marks");
      marks_.push_back(stack_.size());
      return true;
    case ']':
      return push_new({.kind = Kind::list});
    case '}':
      return push_new({.kind = Kind::dict});
    case ')':
      return push_tuple(0);
    case 0x85:
    case 0x86:
    case 0x87:
      return push_tuple(code - 0x84U);
    case 't':
      return push_new({.kind = Kind::tuple, .items = pop_to_mark()});
    case 'a':
      return append(Kind::list, {pop()});
    case 'e':
      return append(Kind::list, pop_to_mark());
    case 's': {
      const Id value = pop();
      return append(Kind::dict, {pop(), value});
    }
    case 'u':
      return append(Kind::dict, pop_to_mark());
    default:
      return false;
  }
}

bool Machine::run_memo(unsigned char code) {
  switch (code) {
    case 'q':
      return remember(take_number(1));
    case 'r':
      return remember(take_number(4));
    case 0x94:
      return remember(memo_.size());
    case 'h':
      return recall(take_number(1));
    case 'j':
      return recall(take_number(4));
    default:
      return false;
  }
}

bool Machine::run_object(unsigned char code) {
  switch (code) {
    case 0x80:
      check(take_number(1) <= 5, "unknown pickle protocol");
      return true;
    case 0x95:  // a frame states its length; it opens no scope
      check(take_number(8) <= file_.size() - position_, "a frame is longer than the file");
      return true;
    case 'c': {
      const std::string_view module = take_line();
      return push_function(module, take_line());
    }
    case 0x93: {
      const Id name = pop();
      const Id module = pop();
      return push_function(expect(module, Kind::text, "the name of a module").text(),
                           expect(name, Kind::text, "the name of a function").text());
    }
    case 'R':
      return reduce();
    case 'b':
      return build();
    default:
      return false;
  }
}

std::span<const std::byte> Machine::take(std::uint64_t bytes) {
  check(bytes <= file_.size() - position_, "the pickle is cut off");
  const auto result = file_.subspan(position_, bytes);
  position_ += bytes;
  return result;
}

std::uint64_t Machine::take_number(std::size_t bytes) {
  std::uint64_t number = 0;
  std::size_t shift = 0;
  for (const std::byte byte : take(bytes)) {
    number |= static_cast<std::uint64_t>(byte) << shift;
    shift += 8;
  }
  return number;
}

std::string_view Machine::take_line() {
  const auto rest = file_.subspan(position_);
  const auto end = std::find(rest.begin(), rest.end(), std::byte{'\n'});
  check(end != rest.end(), "the pickle is cut off");
  const auto line = take(static_cast<std::uint64_t>(end - rest.begin()));
  take(1);
  return {reinterpret_cast<const char*>(line.data()), line.size()};
}

bool Machine::push_new(PickleValue value) {
  check(values_.size() < max_values, "the pickle has more than 250000 values");
  stack_.push_back(static_cast<Id>(values_.size()));
  values_.push_back(std::move(value));
  return true;
}

bool Machine::push_long(std::uint64_t bytes) {
  check(bytes <= 8, "the pickle has an integer of more than 64 bits");
  if (bytes == 0) {
    return push_integer(0);
  }
  // Two's complement of that many bytes: shifts the sign bit to the top, then back arithmetically.
  const auto unused = static_cast<int>(8 * (8 - bytes));
  const std::uint64_t number = take_number(bytes);
  return push_integer(static_cast<std::int64_t>(number << unused) >> unused);
}

bool Machine::push_text(std::size_t length_bytes) {
  const std::uint64_t length = take_number(length_bytes);
  return push_new({.kind = Kind::text, .bytes = take(length)});
}

bool Machine::push_tuple(std::size_t items) {
  std::vector<Id> values(items);
  for (std::size_t i = items; i-- > 0;) {
    values[i] = pop();
  }
  return push_new({.kind = Kind::tuple, .items = std::move(values)});
}

bool Machine::push_function(std::string_view module, std::string_view name) {
  for (const FunctionRow& row : functions) {
    if (row.module == module && row.name == name) {
      return push_new({.kind = Kind::function, .integer = static_cast<int>(row.function)});
    }
  }
  throw Error("the pickle asks for " + printable(module) + "." + printable(name) +
              ", which is neither plain data nor a numpy array");
}

Id Machine::last() const {
  check(stack_.size() > (marks_.empty() ? 0 : marks_.back()), "the pickle's stack is empty");
  return stack_.back();
}

Id Machine::pop() {
  const Id value = last();
  stack_.pop_back();
  return value;
}

std::vector<Id> Machine::pop_to_mark() {
  check(!marks_.empty(), "the pickle's stack has no mark");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Id> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

const PickleValue& Machine::expect(Id value, Kind kind, const char* what) const {
  check(values_[value].kind == kind, std::string(what) + " is not what it must be");
  return values_[value];
}

bool Machine::append(Kind kind, const std::vector<Id>& items) {
  expect(last(), kind, "what a pickle adds to");
  check(kind == Kind::list || items.size() % 2 == 0, "the pickle has a key without a value");
  auto& container = values_[last()].items;
  container.insert(container.end(), items.begin(), items.end());
  return true;
}

bool Machine::remember(std::uint64_t slot) {
  check(memo_.size() < max_values, "the pickle remembers more than 250000 values");
  memo_[slot] = last();
  return true;
}

bool Machine::recall(std::uint64_t slot) {
  const auto found = memo_.find(slot);
  check(found != memo_.end(), "the pickle recalls a value that it never remembered");
  check(stack_.size() < max_values, "the pickle's stack has more than 250000 values");
  stack_.push_back(found->second);
  return true;
}

bool Machine::reduce() {
  const Id arguments = pop();
  const Id function = pop();
  const auto called =
      static_cast<Function>(expect(function, Kind::function, "what is called").integer);
  const std::span<const Id> given = expect(arguments, Kind::tuple, "what a call is given").items;
  if (called == Function::dtype) {
    return push_new(type_of(given));
  }
  if (called == Function::encode) {
    return push_new(encoded(given));
  }
  if (called == Function::reconstruct) {  // an empty array, which BUILD fills
    return push_new({.kind = Kind::array, .shape = {0}});
  }
  check(called == Function::from_buffer,
        "the pickle calls numpy.ndarray, which is not how arrays are stored");
  check(given.size() == 4, "numpy's _frombuffer takes four values");  // content, type, shape, order
  PickleValue array = array_of(given[2], given[1], given[0]);
  const std::string_view order = expect(given[3], Kind::text, "an array's order").text();
  check(order == "C" || order == "F", "an array has no known order");
  array.fortran = order == "F";
  return push_new(std::move(array));
}

// An array's state is version, shape, type, Fortran order, content.
bool Machine::build() {
  const Id state = pop();
  const std::span<const Id> items = expect(state, Kind::tuple, "the state of an object").items;
  if (values_[last()].kind != Kind::array) {
    // The rest of a type is byte order and fields: one-byte elements have neither.
    expect(last(), Kind::type, "an object with a state");
    return true;
  }
  check(items.size() == 5, "an array's state has not five parts");
  PickleValue array = array_of(items[1], items[2], items[4]);
  array.fortran = expect(items[3], Kind::integer, "an array's order").integer != 0;
  values_[last()] = std::move(array);
  return true;
}

PickleValue Machine::type_of(std::span<const Id> arguments) const {
  check(!arguments.empty() && arguments.size() <= 3, "numpy.dtype takes a name and two flags");
  const PickleValue& name = expect(arguments[0], Kind::text, "the name of an element type");
  const std::string_view text = name.text();
  const bool plain = text.size() == 2 && std::string_view("biuf").find(text[0]) != text.npos &&
                     std::string_view("1248").find(text[1]) != text.npos;
  check(plain, "the pickle has an array of element type '" + printable(text) +
                   "', which is not a plain number");
  return {.kind = Kind::type, .bytes = name.bytes};
}

PickleValue Machine::array_of(Id shape, Id type, Id bytes) const {
  PickleValue array{.kind = Kind::array,
                    .bytes = expect(bytes, Kind::text, "an array's content").bytes};
  array.element_type = expect(type, Kind::type, "an array's element type").text();
  std::uint64_t product = static_cast<std::uint64_t>(array.element_type[1] - '0');
  for (const Id dim : expect(shape, Kind::tuple, "an array's shape").items) {
    const std::int64_t size = expect(dim, Kind::integer, "an array's dimension").integer;
    check(size >= 0, "an array has a negative dimension");
    check(!__builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product),
          "an array is larger than memory");
    array.shape.push_back(size);
  }
  check(product == array.bytes.size(), "an array's shape needs " + std::to_string(product) +
                                           " bytes, but it has " +
                                           std::to_string(array.bytes.size()));
  return array;
}

// Python 3 writes bytes in protocol 2 as a text of their code points, in UTF-8, and has the reader
// encode it as Latin-1.
PickleValue Machine::encoded(std::span<const Id> arguments) {
  check(arguments.size() == 2, "_codecs.encode takes a text and an encoding");
  const std::string_view text = expect(arguments[0], Kind::text, "what is encoded").text();
  check(expect(arguments[1], Kind::text, "an encoding").text() == "latin1",
        "the pickle encodes a text as something other than latin1");
  // A file that encodes one text again and again would take any amount of memory.
  encoded_bytes_ += text.size();
  check(encoded_bytes_ <= file_.size(), "the pickle encodes more text than it has");
  std::vector<std::byte>& bytes = encoded_.emplace_back();
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes.push_back(static_cast<std::byte>(first));
      continue;
    }
    const auto second = static_cast<unsigned char>(i + 1 < text.size() ? text[++i] : '\0');
    check((first == 0xC2 || first == 0xC3) && second >= 0x80 && second < 0xC0,
          "the pickle encodes a text that is not Latin-1");
    bytes.push_back(static_cast<std::byte>((first & 3U) << 6U | (second & 0x3FU)));
  }
  return {.kind = Kind::text, .bytes = bytes};
}

}  // namespace

Pickle::Pickle(std::vector<std::byte> file) : file_(std::move(file)) {
  Machine machine(file_);
  root_ = machine.run();
  values_ = machine.take_values();
  encoded_ = machine.take_encoded();
}

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
  const PickleValue* found = nullptr;
  for (std::size_t i = 0; dict.kind == Kind::dict && i + 1 < dict.items.size(); i += 2) {
    const PickleValue& candidate = at(dict.items[i]);
    if (candidate.kind == Kind::text && candidate.text() == key) {
      found = &at(dict.items[i + 1]);  // a later entry replaces an earlier one
    }
  }
  return found;
}

}  // namespace cnn::data
