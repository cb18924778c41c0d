#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/error.h"

// Serialises values for ranks of the same program on machines of the same architecture: numbers
// keep their bits, texts and lists follow their length. A struct with texts or lists lists its
// members:
//
//   static auto fields(auto& self) { return std::tie(self.path, self.global_step); }
namespace cnn::allreduce {

template <class T>
concept HasFields = requires(T& value) {
  std::remove_const_t<T>::fields(value);
};

// A struct of numbers alone is sent as its bytes; it must not contain pointers.
template <class T>
concept IsPlain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> &&
                  !std::is_same_v<T, std::string_view> && !HasFields<T>;

class ByteWriter {
 public:
  template <IsPlain T>
  void put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    for (const T& value : values) {
      put(value);
    }
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) {
      put(*value);
    }
  }
  template <HasFields T>
  void put(const T& value) {
    std::apply([this](const auto&... field) { (this->put(field), ...); }, T::fields(value));
  }

  std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}

  // Throws Error if fewer bytes are left than the value needs.
  template <IsPlain T>
  void get(T& value) {
    std::memcpy(&value, next(sizeof(value)).data(), sizeof(value));
  }
  void get(std::string& text) {
    std::size_t size = 0;
    get(size);
    text = next(size);
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::size_t size = 0;
    get(size);
    check(size <= left_.size(), wrong_length);  // each value takes at least a byte
    values.clear();
    for (std::size_t i = 0; i < size; ++i) {
      get(values.emplace_back());
    }
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool has_value = false;
    get(has_value);
    value.reset();
    if (has_value) {
      get(value.emplace());
    }
  }
  template <HasFields T>
  void get(T& value) {
    std::apply([this](auto&... field) { (this->get(field), ...); }, T::fields(value));
  }

  // Throws Error if bytes are left.
  void finish() const { check(left_.empty(), wrong_length); }

 private:
  static constexpr std::string_view wrong_length =
      "another rank has sent a message of the wrong length: start all ranks with the same program";

  std::string_view next(std::size_t size) {
    check(size <= left_.size(), wrong_length);
    const std::string_view bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return bytes;
  }

  std::string_view left_;
};

template <class T>
std::string to_bytes(const T& value) {
  ByteWriter writer;
  writer.put(value);
  return std::move(writer).take();
}

// Returns the value that to_bytes() has written. Throws Error if the length does not match.
template <class T>
T from_bytes(std::string_view bytes) {
  T value{};
  ByteReader reader(bytes);
  reader.get(value);
  reader.finish();
  return value;
}

}  // namespace cnn::allreduce
