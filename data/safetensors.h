#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "runtime/tensor.h"

namespace cnn::data {

// The safetensors format: 8 bytes length (little endian), a JSON object {name: {dtype, shape,
// data_offsets}}, then the tensors' bytes, row-major and contiguous.

enum class StoredType : std::uint8_t { f32, f16, bf16, f64, i8, u8, i32, i64 };
std::size_t size_of(StoredType type);
std::string_view name_of(StoredType type);  // name in the file: "F32"

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  Shape shape;

  std::uint64_t bytes() const;  // throws Error above 2^63
};

// Texts about a file, by name: the format's "__metadata__".
using Metadata = std::map<std::string, std::string, std::less<>>;

// A file whose whole header is checked on opening; the tensors' bytes stay on disk. Any thread may
// call read(). All members throw Error with the file's and the tensor's name.
class SafetensorsFile {
 public:
  struct Entry {
    StoredTensor tensor;
    std::uint64_t offset = 0;  // in the file
    std::uint64_t bytes = 0;
  };

  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  // Returns the text entries of the file's metadata.
  const Metadata& metadata() const { return metadata_; }
  const Entry* find(std::string_view name) const;  // nullptr: no such tensor
  // Fills `into` with the bytes of the tensor from `offset` on.
  void read(const Entry& entry, std::uint64_t offset, std::span<std::byte> into) const;
  // Reads the whole tensor of any type as f32; `into` has as many elements as the tensor.
  void read_f32(const Entry& entry, std::span<float> into) const;

 private:
  void parse_header();
  void check_offsets(std::uint64_t data_start) const;

  InputFile file_;
  std::map<std::string, Entry, std::less<>> entries_;
  Metadata metadata_;
};

// Returns the bytes of tensor number `index`; they must stay unchanged until the next call. The
// caller returns its own memory, or one scratch buffer for all tensors.
using TensorSource = std::function<std::span<const std::byte>(std::size_t index)>;

// Writes a complete file or leaves the existing one (see AtomicFile). Requests each tensor once, in
// order.
void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const TensorSource& source, const Metadata& metadata = {});

}  // namespace cnn::data
