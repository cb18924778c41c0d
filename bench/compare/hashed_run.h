#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cnn::compare {

// Reads files of cnn_benchmarks --hash_file: the hash of every tensor of some steps.

struct HashedTensor {
  std::uint64_t key = 0;  // equal for the same value in another run
  std::string node, output, op, name;
  std::string shape;   // type and shape: "f32[8, 64, 56, 56]"
  std::string stored;  // type, shape and layout
  std::string layer;   // first parameter of its node, or empty
};

struct HashedStep {
  std::int64_t number = 0;  // of the training, from 1
  struct Entry {
    std::size_t tensor = 0;
    std::uint64_t hash = 0;
  };
  std::vector<Entry> entries;  // in execution order; a recomputed node's tensors occur again
};

// NOLINTNEXTLINE(bugprone-exception-escape): moving the JSON value does not throw.
struct HashedRun {
  std::string path;
  nlohmann::json head;
  std::vector<HashedTensor> tensors;
  std::vector<HashedStep> steps;
  bool cut_off = false;  // the file ends within a step, which is dropped
};

// Read a file, or its text. Throw Error in one line that begins with the path if the file is
// missing, of another kind or a newer format, damaged, or has no complete step.
HashedRun read_hashes(const std::string& path);
HashedRun parse_hashes(const std::string& path, const std::string& text);

}  // namespace cnn::compare
