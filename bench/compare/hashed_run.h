#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cnn::compare {

// A file of cnn_benchmarks --hash_file: the hash of every tensor of some steps.

struct HashedTensor {
  std::uint64_t key = 0;  // the same for the same value in another run
  std::string node, output, op, name;
  std::string shape;   // with the type: "f32[8, 64, 56, 56]"
  std::string stored;  // with the layout as well
  std::string layer;   // the first parameter of its node, or empty
};

struct HashedStep {
  std::int64_t number = 0;  // of the training, from 1 on
  struct Entry {
    std::size_t tensor = 0;
    std::uint64_t hash = 0;
  };
  std::vector<Entry> entries;  // in the order in which nodes ran; again where one ran again
};

// NOLINTNEXTLINE(bugprone-exception-escape): moving the JSON value does not throw.
struct HashedRun {
  std::string path;
  nlohmann::json head;
  std::vector<HashedTensor> tensors;
  std::vector<HashedStep> steps;
  bool cut_off = false;  // inside a step, which is left out
};

// Reads a file, or its text. Throws Error in one line that begins with the path where the file is
// missing, of another kind or a newer form, damaged, or has no whole step.
HashedRun read_hashes(const std::string& path);
HashedRun parse_hashes(const std::string& path, const std::string& text);

}  // namespace cnn::compare
