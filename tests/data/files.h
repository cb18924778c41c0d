#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/safetensors.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::data {

using tests::error_of;
using tests::read_file;
using tests::TemporaryFolder;

std::string gzip(const std::string& bytes);

std::string little_endian(std::uint64_t number, int bytes);
// Returns an idx file of unsigned bytes.
std::string idx(const std::vector<std::uint32_t>& dims, const std::string& elements);
// Writes an MNIST training set of `count` images. All pixels of image i are i; its label is i mod
// 10.
void write_mnist(const TemporaryFolder& folder, std::uint32_t count);
// Returns a safetensors file with this header, followed by these bytes.
std::string safetensors(const std::string& header, const std::string& bytes);
// Writes a `tensors` data set of `count` images of 2 x 1 x 3. Image i has the values 6 i to 6 i + 5
// and the label i.
std::filesystem::path write_tensors(const TemporaryFolder& folder, std::int64_t count);

struct ReadExample {
  std::vector<std::uint8_t> image;
  std::int32_t label = 0;
};
ReadExample read_one(const Dataset& dataset, std::int64_t index);

}  // namespace cnn::data
