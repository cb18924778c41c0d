#include "data/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "data/json/parse_json.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "files and memory are little endian");

// A network of 2000 tensors needs 0.3 MB; a larger header is an attack on the parser's memory.
constexpr std::uint64_t largest_header = 16U << 20;
constexpr const char* metadata_name = "__metadata__";
constexpr int deepest_nesting = 4;  // {name: {shape: [..]}} is 3

struct TypeRow {
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<TypeRow, 8> types{{{"F32", 4},
                                        {"F16", 2},
                                        {"BF16", 2},
                                        {"F64", 8},
                                        {"I8", 1},
                                        {"U8", 1},
                                        {"I32", 4},
                                        {"I64", 8}}};

StoredType parse_type(const std::string& name) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].name == name) {
      return static_cast<StoredType>(i);
    }
  }
  throw Error("element type " + printable(name) +
              " is not read; convert it to F32, F16, BF16, F64, I8, U8, I32 or I64");
}

// Rejects input that a document object would hide or that costs memory: deep nesting, duplicate
// names.
json parse_bounded(const std::string& text) {
  std::set<std::string> names;
  const auto examine = [&names](int depth, json::parse_event_t event, json& value) {
    check(depth <= deepest_nesting, "its header is nested too deeply");
    if (event == json::parse_event_t::key && depth == 1) {
      const auto& name = value.get_ref<const std::string&>();
      check(names.insert(name).second, "it has two tensors called " + printable(name));
    }
    return true;
  };
  try {
    return parse_json<json>(text, examine);
  } catch (const JsonError& problem) {
    throw Error(std::string("its header is ") + problem.what());
  }
}

std::uint64_t parse_unsigned(const json& value, const char* what) {
  check(value.is_number_unsigned(), std::string(what) + " must be numbers from 0");
  const auto number = value.get<std::uint64_t>();
  check(number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
        std::string(what) + " are too large");
  return number;
}

const json& member(const json& object, const char* name) {
  const auto found = object.find(name);
  check(found != object.end(), std::string("it has no ") + name);
  return *found;
}

Metadata texts_of(const json& values) {
  Metadata texts;
  for (const auto& [name, value] : values.items()) {
    if (value.is_string()) {
      texts[name] = value.get<std::string>();
    }
  }
  return texts;
}

SafetensorsFile::Entry parse_entry(const std::string& name, const json& value) {
  SafetensorsFile::Entry entry;
  entry.tensor.name = name;
  check(value.is_object(), "its description is no object");
  const json& type = member(value, "dtype");
  check(type.is_string(), "its dtype is no text");
  entry.tensor.type = parse_type(type.get<std::string>());
  const json& shape = member(value, "shape");
  check(shape.is_array(), "its shape is no list");
  check(shape.size() <= Shape::max_rank, "it has more than five dimensions");
  std::vector<std::int64_t> dims;
  for (const json& dim : shape) {
    dims.push_back(static_cast<std::int64_t>(parse_unsigned(dim, "dimensions")));
  }
  entry.tensor.shape = Shape(dims);
  const json& offsets = member(value, "data_offsets");
  check(offsets.is_array() && offsets.size() == 2, "its data_offsets are not two numbers");
  entry.offset = parse_unsigned(offsets[0], "data_offsets");
  const std::uint64_t end = parse_unsigned(offsets[1], "data_offsets");
  check(entry.offset <= end, "its data_offsets run backwards");
  entry.bytes = end - entry.offset;
  check(entry.bytes == entry.tensor.bytes(), "its type and shape " + to_string(entry.tensor.shape) +
                                                 " need " + std::to_string(entry.tensor.bytes()) +
                                                 " bytes, but it has " +
                                                 std::to_string(entry.bytes));
  return entry;
}

template <class T, class Convert>
void convert_all(std::span<const std::byte> from, std::span<float> to, Convert convert) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    T value{};
    std::memcpy(&value, from.data() + i * sizeof(T), sizeof(T));
    to[i] = convert(value);
  }
}

void to_f32(StoredType type, std::span<const std::byte> from, std::span<float> to) {
  const auto cast = [](auto value) { return static_cast<float>(value); };
  switch (type) {
    case StoredType::f32:
      return convert_all<float>(from, to, cast);
    case StoredType::f16:
      return convert_all<Float16>(from, to, [](Float16 value) { return to_float(value); });
    case StoredType::bf16:
      return convert_all<BFloat16>(from, to, [](BFloat16 value) { return to_float(value); });
    case StoredType::f64:
      return convert_all<double>(from, to, cast);
    case StoredType::i8:
      return convert_all<std::int8_t>(from, to, cast);
    case StoredType::u8:
      return convert_all<std::uint8_t>(from, to, cast);
    case StoredType::i32:
      return convert_all<std::int32_t>(from, to, cast);
    case StoredType::i64:
      return convert_all<std::int64_t>(from, to, cast);
  }
}

}  // namespace

std::size_t size_of(StoredType type) { return types.at(static_cast<std::size_t>(type)).bytes; }
std::string_view name_of(StoredType type) { return types.at(static_cast<std::size_t>(type)).name; }

std::uint64_t StoredTensor::bytes() const {
  std::uint64_t product = size_of(type);
  for (const std::int64_t dim : shape) {
    // A zero dimension makes the product zero, but an overflow of the others is still an error.
    check(!__builtin_mul_overflow(product, static_cast<std::uint64_t>(dim), &product) &&
              product <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
          "shape " + to_string(shape) + " has too many elements");
  }
  return product;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  try {
    parse_header();
  } catch (const Error& error) {
    throw Error(path.string() + " is not a valid safetensors file: " + error.what());
  }
}

void SafetensorsFile::parse_header() {
  std::uint64_t length = 0;
  check(file_.size() >= sizeof(length), "it is shorter than 8 bytes");
  file_.read(0, std::as_writable_bytes(std::span(&length, 1)));
  check(length <= file_.size() - sizeof(length), "its header is longer than the file");
  check(length <= largest_header, "its header is longer than 16 MiB");
  std::string text(length, '\0');
  file_.read(sizeof(length), std::as_writable_bytes(std::span(text)));
  const json header = parse_bounded(text);
  check(header.is_object(), "its header is no JSON object");
  const std::uint64_t data_start = sizeof(length) + length;
  for (const auto& [name, value] : header.items()) {
    if (name == metadata_name) {
      metadata_ = texts_of(value);
      continue;
    }
    try {
      Entry entry = parse_entry(name, value);
      check(entry.offset + entry.bytes <= file_.size() - data_start,
            "its bytes lie beyond the end of the file");
      entry.offset += data_start;
      entries_.emplace(name, std::move(entry));
    } catch (const Error& error) {
      throw Error("tensor " + printable(name) + ": " + error.what());
    }
  }
  check_offsets(data_start);
}

void SafetensorsFile::check_offsets(std::uint64_t data_start) const {
  std::vector<const Entry*> order;
  for (const auto& [name, entry] : entries_) {
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const Entry* left, const Entry* right) {
    return std::pair(left->offset, left->bytes) < std::pair(right->offset, right->bytes);
  });
  std::uint64_t end = data_start;
  for (const Entry* entry : order) {
    check(entry->offset >= end,
          "tensor " + printable(entry->tensor.name) + " overlaps another one");
    check(entry->offset == end,
          "there are bytes of no tensor before " + printable(entry->tensor.name));
    end = entry->offset + entry->bytes;
  }
  check(end == file_.size(), "there are bytes of no tensor at its end");
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

void SafetensorsFile::read(const Entry& entry, std::uint64_t offset,
                           std::span<std::byte> into) const {
  check(offset <= entry.bytes && into.size() <= entry.bytes - offset,
        "a read beyond the tensor " + entry.tensor.name);
  file_.read(entry.offset + offset, into);
}

void SafetensorsFile::read_f32(const Entry& entry, std::span<float> into) const {
  const StoredType type = entry.tensor.type;
  check(into.size() * size_of(type) == entry.bytes,
        "tensor " + entry.tensor.name + " has another number of elements than asked for");
  if (type == StoredType::f32) {
    return read(entry, 0, std::as_writable_bytes(into));
  }
  // Converts in pieces, so that a 16-bit model of any size needs constant memory.
  constexpr std::size_t piece = 65536;
  std::vector<std::byte> raw(std::min(piece, into.size()) * size_of(type));
  for (std::size_t done = 0; done < into.size(); done += piece) {
    const std::size_t count = std::min(piece, into.size() - done);
    const auto part = std::span(raw).first(count * size_of(type));
    read(entry, done * size_of(type), part);
    to_f32(type, part, into.subspan(done, count));
  }
}

void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const TensorSource& source, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    header[metadata_name] = metadata;
  }
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    check(!tensor.name.empty() && tensor.name != metadata_name,
          path.string() + ": a tensor cannot be called '" + tensor.name + "'");
    check(names.insert(tensor.name).second, path.string() + ": two tensors " + tensor.name);
    const std::uint64_t end = offset + tensor.bytes();
    header[tensor.name] = {{"dtype", name_of(tensor.type)},
                           {"shape", std::vector(tensor.shape.begin(), tensor.shape.end())},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the tensors to 8 bytes
  const std::uint64_t length = text.size();

  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(text)));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<const std::byte> bytes = source(i);
    check(bytes.size() == tensors[i].bytes(),
          path.string() + ": tensor " + tensors[i].name + " was given " +
              std::to_string(bytes.size()) + " bytes, not " + std::to_string(tensors[i].bytes()));
    file.write(bytes);
  }
  file.commit();
}

}  // namespace cnn::data
