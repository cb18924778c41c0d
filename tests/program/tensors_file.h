#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tests/support/files.h"

namespace cnn::tests {

constexpr int cifar_pixels = 32 * 32 * 3;

// Writes a file for --data_name=tensors with images of CIFAR-10's size, one per label, and returns
// its path.
inline std::string write_tensors(const TemporaryFolder& folder, std::span<const float> images,
                                 std::span<const std::int32_t> labels) {
  const std::string n = std::to_string(labels.size()), end = std::to_string(images.size_bytes()),
                    all = std::to_string(images.size_bytes() + labels.size_bytes());
  std::string header = R"({"images":{"dtype":"F32","shape":[)" + n +
                       R"(,32,32,3],"data_offsets":[0,)" + end +
                       R"(]},"labels":{"dtype":"I32","shape":[)" + n + R"(],"data_offsets":[)" +
                       end + "," + all + "]}}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  file += header;
  file.append(reinterpret_cast<const char*>(images.data()), images.size_bytes());
  file.append(reinterpret_cast<const char*>(labels.data()), labels.size_bytes());
  return folder.write("examples.safetensors", file).string();
}

}  // namespace cnn::tests
