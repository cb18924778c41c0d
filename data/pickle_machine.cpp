#include "data/pickle_machine.h"

#include <algorithm>
#include <array>
#include <bit>

#include "data/file.h"
#include "data/pickle_text.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

constexpr std::size_t most_values = 250'000;  // a batch of CIFAR-10 has 20,000

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string in_hex(unsigned number) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'0', 'x', digits[(number >> 4) & 15], digits[number & 15]};
}

enum class Function : std::uint8_t { reconstruct, ndarray, dtype, encode, from_buffer };
struct FunctionRow {
  std::string_view module, name;
  Function function;
};
// numpy before version 2, and since.
constexpr std::array<FunctionRow, 7> functions{
    {{"numpy.core.multiarray", "_reconstruct", Function::reconstruct},
     {"numpy._core.multiarray", "_reconstruct", Function::reconstruct},
     {"numpy", "ndarray", Function::ndarray},
     {"numpy", "dtype", Function::dtype},
     {"_codecs", "encode", Function::encode},
     {"numpy.core.numeric", "_frombuffer", Function::from_buffer},
     {"numpy._core.numeric", "_frombuffer", Function::from_buffer}}};

struct OpcodeName {
  unsigned char code;
  std::string_view name;
};
constexpr std::array<OpcodeName, 14> refused{{{'i', "INST"},
                                              {'o', "OBJ"},
                                              {'P', "PERSID"},
                                              {'Q', "BINPERSID"},
                                              {0x81, "NEWOBJ"},
                                              {0x82, "EXT1"},
                                              {0x83, "EXT2"},
                                              {0x84, "EXT4"},
                                              {0x8f, "EMPTY_SET"},
                                              {0x90, "ADDITEMS"},
                                              {0x91, "FROZENSET"},
                                              {0x92, "NEWOBJ_EX"},
                                              {0x97, "NEXT_BUFFER"},
                                              {0x98, "READONLY_BUFFER"}}};

[[noreturn]] void refuse(unsigned char code, std::size_t position) {
  const auto* const row = std::find_if(refused.begin(), refused.end(),
                                       [code](const OpcodeName& r) { return r.code == code; });
  throw Error("pickle opcode " + (row == refused.end() ? in_hex(code) : std::string(row->name)) +
              " at byte " + std::to_string(position) + " is not plain data");
}

}  // namespace

// What each opcode does, by the description in Python's pickletools.
struct PickleMachine::Table {
  std::array<Instruction, 256> at{};

  Table() {
    add_numbers();
    add_texts();
    add_containers();
    add_memo();
    at['c'] = [](PickleMachine& m) {
      const std::string_view module = m.take_line();
      m.push_function(module, m.take_line());
    };
    at[0x93] = [](PickleMachine& m) { m.stack_function(); };
    at['R'] = [](PickleMachine& m) { m.reduce(); };
    at['b'] = [](PickleMachine& m) { m.build(); };
    at[0x80] = [](PickleMachine& m) { check(m.take_number(1) <= 5, "unknown pickle protocol"); };
    at[0x95] = [](PickleMachine& m) {  // a frame promises how much follows; it starts no scope
      const std::uint64_t bytes = m.take_number(8);
      check(bytes <= m.file_.size() - m.position_, "a frame is longer than the file");
    };
  }

  void add_numbers() {
    at['N'] = [](PickleMachine& m) { m.push_kind(Kind::none); };
    at[0x88] = [](PickleMachine& m) { m.push_boolean(true); };
    at[0x89] = [](PickleMachine& m) { m.push_boolean(false); };
    at['I'] = [](PickleMachine& m) { m.text_integer(); };
    at['L'] = [](PickleMachine& m) { m.text_long(); };
    at['F'] = [](PickleMachine& m) { m.text_real(); };
    at['G'] = [](PickleMachine& m) { m.binary_real(); };
    at['J'] = [](PickleMachine& m) { m.push_integer(static_cast<std::int32_t>(m.take_number(4))); };
    at['K'] = [](PickleMachine& m) { m.push_integer(static_cast<int>(m.take_number(1))); };
    at['M'] = [](PickleMachine& m) { m.push_integer(static_cast<int>(m.take_number(2))); };
    at[0x8a] = [](PickleMachine& m) { m.push_long(m.take_number(1)); };
    at[0x8b] = [](PickleMachine& m) { m.push_long(m.take_number(4)); };
  }

  // Python 2's str counts as bytes.
  void add_texts() {
    at['S'] = [](PickleMachine& m) { m.quoted_text(); };
    at['V'] = [](PickleMachine& m) { m.raw_unicode_text(); };
    at['U'] = [](PickleMachine& m) { m.push_bytes(Kind::bytes, 1); };
    at['T'] = [](PickleMachine& m) { m.push_bytes(Kind::bytes, 4); };
    at['C'] = [](PickleMachine& m) { m.push_bytes(Kind::bytes, 1); };
    at['B'] = [](PickleMachine& m) { m.push_bytes(Kind::bytes, 4); };
    at[0x8e] = [](PickleMachine& m) { m.push_bytes(Kind::bytes, 8); };
    at[0x96] = [](PickleMachine& m) { m.push_bytes(Kind::bytes, 8); };
    at[0x8c] = [](PickleMachine& m) { m.push_bytes(Kind::text, 1); };
    at['X'] = [](PickleMachine& m) { m.push_bytes(Kind::text, 4); };
    at[0x8d] = [](PickleMachine& m) { m.push_bytes(Kind::text, 8); };
  }

  void add_containers() {
    at['('] = [](PickleMachine& m) { m.marks_.push_back(m.stack_.size()); };
    at[']'] = [](PickleMachine& m) { m.push_kind(Kind::list); };
    at['}'] = [](PickleMachine& m) { m.push_kind(Kind::dict); };
    at[')'] = [](PickleMachine& m) { m.push_kind(Kind::tuple); };
    at['l'] = [](PickleMachine& m) { m.push_items(Kind::list, m.pop_to_mark()); };
    at['t'] = [](PickleMachine& m) { m.push_items(Kind::tuple, m.pop_to_mark()); };
    at['d'] = [](PickleMachine& m) {
      const std::vector<Id> items = m.pop_to_mark();
      m.push_kind(Kind::dict);
      m.insert(items);
    };
    at[0x85] = [](PickleMachine& m) { m.push_tuple(1); };
    at[0x86] = [](PickleMachine& m) { m.push_tuple(2); };
    at[0x87] = [](PickleMachine& m) { m.push_tuple(3); };
    at['a'] = [](PickleMachine& m) { m.append({{m.pop()}}); };
    at['e'] = [](PickleMachine& m) { m.append(m.pop_to_mark()); };
    at['s'] = [](PickleMachine& m) {
      const Id value = m.pop();
      m.insert({{m.pop(), value}});
    };
    at['u'] = [](PickleMachine& m) { m.insert(m.pop_to_mark()); };
  }

  void add_memo() {
    at['0'] = [](PickleMachine& m) {
      if (!m.marks_.empty() && m.marks_.back() == m.stack_.size()) {
        m.marks_.pop_back();
      } else {
        m.pop();
      }
    };
    at['1'] = [](PickleMachine& m) { m.pop_to_mark(); };
    at['2'] = [](PickleMachine& m) {
      const Id value = m.pop();
      m.push(value);
      m.push(value);
    };
    at['p'] = [](PickleMachine& m) {
      m.remember(parse_number<std::uint64_t>(m.take_line()), m.last());
    };
    at['q'] = [](PickleMachine& m) { m.remember(m.take_number(1), m.last()); };
    at['r'] = [](PickleMachine& m) { m.remember(m.take_number(4), m.last()); };
    at[0x94] = [](PickleMachine& m) { m.remember(m.memo_.size(), m.last()); };
    at['g'] = [](PickleMachine& m) { m.recall(parse_number<std::uint64_t>(m.take_line())); };
    at['h'] = [](PickleMachine& m) { m.recall(m.take_number(1)); };
    at['j'] = [](PickleMachine& m) { m.recall(m.take_number(4)); };
  }
};

std::uint32_t PickleMachine::run() {
  const Table table;
  while (true) {
    const std::size_t start = position_;
    const auto code = static_cast<unsigned char>(take(1).front());
    if (code == '.') {
      check(position_ == file_.size(), "the pickle ends before its file does");
      return pop();
    }
    if (table.at[code] == nullptr) {
      refuse(code, start);
    }
    table.at[code](*this);
  }
}

std::span<const std::byte> PickleMachine::take(std::uint64_t bytes) {
  check(bytes <= file_.size() - position_, "the pickle is cut off");
  const auto result = file_.subspan(position_, bytes);
  position_ += bytes;
  return result;
}

std::uint64_t PickleMachine::take_number(std::size_t bytes) {
  std::uint64_t number = 0;
  std::size_t shift = 0;
  for (const std::byte byte : take(bytes)) {
    number |= static_cast<std::uint64_t>(byte) << shift;
    shift += 8;
  }
  return number;
}

std::string_view PickleMachine::take_line() {
  const std::string_view rest = as_text(file_.subspan(position_));
  const std::size_t length = rest.find('\n');
  check(length != std::string_view::npos, "the pickle is cut off");
  position_ += length + 1;
  return rest.substr(0, length);
}

PickleMachine::Id PickleMachine::make(PickleValue value) {
  check(values_.size() < most_values, "the pickle has more than 250000 values");
  values_.push_back(std::move(value));
  return static_cast<Id>(values_.size() - 1);
}

PickleMachine::Id PickleMachine::last() const {
  check(stack_.size() > (marks_.empty() ? 0 : marks_.back()), "the pickle's stack is empty");
  return stack_.back();
}

PickleMachine::Id PickleMachine::pop() {
  const Id value = last();
  stack_.pop_back();
  return value;
}

std::vector<PickleMachine::Id> PickleMachine::pop_to_mark() {
  check(!marks_.empty(), "the pickle's stack has no mark");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Id> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

const PickleValue& PickleMachine::expect(Id value, Kind kind, const char* what) const {
  check(values_[value].kind == kind, std::string(what) + " is not what it must be");
  return values_[value];
}

// Bytes that do not stand in the file as they are. Decoding yields at most twice what it reads, so
// only a file that decodes one text again and again meets the limit.
std::span<const std::byte> PickleMachine::own(const std::string& bytes) {
  owned_bytes_ += bytes.size();
  check(owned_bytes_ <= 4 * file_.size(), "the pickle's texts are larger than its file");
  const auto view = std::as_bytes(std::span(bytes));
  return owned_.emplace_back(view.begin(), view.end());
}

void PickleMachine::push_bytes(Kind kind, std::size_t length_bytes) {
  const std::uint64_t length = take_number(length_bytes);
  push_new({.kind = kind, .bytes = take(length)});
}

void PickleMachine::push_items(Kind kind, std::vector<Id> items) {
  push_new({.kind = kind, .items = std::move(items)});
}

void PickleMachine::push_tuple(std::size_t items) {
  std::vector<Id> values(items);
  for (std::size_t i = items; i-- > 0;) {
    values[i] = pop();
  }
  push_items(Kind::tuple, std::move(values));
}

void PickleMachine::push_long(std::uint64_t bytes) {
  check(bytes <= 8, "the pickle has an integer of more than 64 bits");
  if (bytes == 0) {
    return push_integer(0);
  }
  // Two's complement of that many bytes: move its sign bit to the top, then back arithmetically.
  const auto unused = static_cast<int>(8 * (8 - bytes));
  const std::uint64_t number = take_number(bytes);
  push_integer(static_cast<std::int64_t>(number << unused) >> unused);
}

void PickleMachine::push_function(std::string_view module, std::string_view name) {
  for (const FunctionRow& row : functions) {
    if (row.module == module && row.name == name) {
      return push_new({.kind = Kind::function, .integer = static_cast<int>(row.function)});
    }
  }
  throw Error("the pickle asks for " + printable(module) + "." + printable(name) +
              ", which is neither plain data nor a numpy array");
}

void PickleMachine::append(std::span<const Id> items) {
  expect(last(), Kind::list, "what a pickle appends to");
  auto& list = values_[last()].items;
  list.insert(list.end(), items.begin(), items.end());
}

void PickleMachine::insert(std::span<const Id> items) {
  expect(last(), Kind::dict, "what a pickle inserts into");
  check(items.size() % 2 == 0, "the pickle has a key without a value");
  auto& dict = values_[last()].items;
  dict.insert(dict.end(), items.begin(), items.end());
}

void PickleMachine::remember(std::uint64_t slot, Id value) {
  check(memo_.size() < most_values, "the pickle remembers more than 250000 values");
  memo_[slot] = value;
}

void PickleMachine::recall(std::uint64_t slot) {
  const auto found = memo_.find(slot);
  check(found != memo_.end(), "the pickle recalls a value that it never remembered");
  push(found->second);
}

void PickleMachine::text_integer() {
  const std::string_view line = take_line();
  if (line == "00" || line == "01") {  // how protocols 0 and 1 write False and True
    return push_boolean(line == "01");
  }
  push_integer(parse_number<std::int64_t>(line));
}

void PickleMachine::text_long() {
  std::string_view line = take_line();
  if (!line.empty() && line.back() == 'L') {
    line.remove_suffix(1);
  }
  push_integer(parse_number<std::int64_t>(line));
}

void PickleMachine::text_real() {
  push_new({.kind = Kind::real, .real = parse_number<double>(take_line())});
}

void PickleMachine::binary_real() {
  std::uint64_t bits = 0;
  for (const std::byte byte : take(8)) {  // big endian
    bits = (bits << 8) | static_cast<std::uint64_t>(byte);
  }
  push_new({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
}

void PickleMachine::quoted_text() {
  push_new({.kind = Kind::bytes, .bytes = own(decode_quoted(take_line()))});
}

void PickleMachine::raw_unicode_text() {
  push_new({.kind = Kind::text, .bytes = own(decode_raw_unicode(take_line()))});
}

void PickleMachine::stack_function() {
  const Id name = pop();
  const Id module = pop();
  push_function(expect(module, Kind::text, "the name of a module").text(),
                expect(name, Kind::text, "the name of a function").text());
}

void PickleMachine::reduce() {
  const Id arguments = pop();
  const Id function = pop();
  const std::span<const Id> given = expect(arguments, Kind::tuple, "what a call is given").items;
  switch (static_cast<Function>(expect(function, Kind::function, "what is called").integer)) {
    case Function::reconstruct:  // an array of no elements, which BUILD fills
      check(given.size() == 3, "numpy's _reconstruct takes three values");
      expect(given[0], Kind::function, "the class of an array");
      return push_new({.kind = Kind::array, .shape = {0}, .element_type = given[0]});
    case Function::dtype:
      return push_new(type_of(given));
    case Function::encode:
      return push_new(encoded(given));
    case Function::from_buffer:
      return push_new(array_from_buffer(given));
    case Function::ndarray:
      break;
  }
  throw Error("the pickle calls numpy.ndarray, which is not how arrays are stored");
}

void PickleMachine::build() {
  const Id state = pop();
  const std::span<const Id> items = expect(state, Kind::tuple, "the state of an object").items;
  const Id object = last();
  if (values_[object].kind == Kind::array) {
    values_[object] = built_array(items);
    return;
  }
  // The rest of a type is byte order and fields: one-byte elements have none.
  expect(object, Kind::type, "an object with a state");
}

std::span<const std::byte> PickleMachine::content(Id value, const char* what) const {
  const Kind kind = values_[value].kind;
  check(kind == Kind::bytes || kind == Kind::text, std::string(what) + " is no text");
  return values_[value].bytes;
}

PickleValue PickleMachine::encoded(std::span<const Id> arguments) {
  check(arguments.size() == 2, "_codecs.encode takes a text and a code");
  const std::string_view code = as_text(content(arguments[1], "the code of a text"));
  check(code == "latin1" || code == "latin-1", "the pickle encodes a text other than as latin1");
  const PickleValue& text = expect(arguments[0], Kind::text, "what is encoded");
  return {.kind = Kind::bytes, .bytes = own(decode_latin1(text.text()))};
}

PickleValue PickleMachine::type_of(std::span<const Id> arguments) const {
  check(!arguments.empty() && arguments.size() <= 3, "numpy.dtype takes a name and two flags");
  const auto name = content(arguments[0], "the name of an element type");
  const std::string_view text = as_text(name);
  const bool plain = text.size() == 2 && std::string_view("biuf").find(text[0]) != text.npos &&
                     std::string_view("1248").find(text[1]) != text.npos;
  check(plain, "the pickle has an array of element type '" + printable(text) +
                   "', which is not a plain number");
  return {.kind = Kind::type, .bytes = name};
}

PickleValue PickleMachine::array_of(Id shape, Id type, Id bytes) const {
  PickleValue array{.kind = Kind::array, .bytes = content(bytes, "an array's content")};
  array.element_type = type;
  const PickleValue& element = expect(type, Kind::type, "an array's element type");
  std::uint64_t product = static_cast<std::uint64_t>(element.text()[1] - '0');
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

// State: version, shape, type, whether the first axis is fastest, content.
PickleValue PickleMachine::built_array(std::span<const Id> state) const {
  check(state.size() == 5, "an array's state has not five parts");
  PickleValue array = array_of(state[1], state[2], state[4]);
  const PickleValue& order = values_[state[3]];
  check(order.kind == Kind::boolean || order.kind == Kind::integer, "an array has no known order");
  array.fortran = order.integer != 0;
  return array;
}

// Protocol 5: content, type, shape, "C" or "F".
PickleValue PickleMachine::array_from_buffer(std::span<const Id> arguments) const {
  check(arguments.size() == 4, "numpy's _frombuffer takes four values");
  PickleValue array = array_of(arguments[2], arguments[1], arguments[0]);
  const std::string_view order = as_text(content(arguments[3], "an array's order"));
  check(order == "C" || order == "F", "an array has no known order");
  array.fortran = order == "F";
  return array;
}

}  // namespace cnn::data
