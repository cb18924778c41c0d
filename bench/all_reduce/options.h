#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cnn::bench {

// The options of all_reduce_benchmark besides the flags of cnn_benchmarks, named as in nccl-tests.
struct ReduceOptions {
  // -b, -e: bytes of the smallest and the largest buffer. With either of them the program measures
  // a table of sizes; without, it reduces the gradients of --model, like the original program.
  std::optional<std::size_t> least, most;
  double factor = 2;                // -f: from one size to the next
  std::size_t step = 0;             // -i: bytes from one size to the next, instead of the factor
  int iterations = 20;              // -n
  int warm_up = 5;                  // -w
  int per_step = 5;                 // --iters_per_step: reductions of all gradients in a timed step
  bool check = true;                // -c
  bool copies = true;               // --memcpy: also times a copy of as many bytes
  std::optional<std::string> json;  // -J: the rows as a file
  std::optional<std::string> compare;   // --compare=mpi
  std::vector<std::string> suite = {};  // words that are for the suite's flags

  bool table() const { return least || most; }
  // Returns the bytes of each buffer: whole elements, ascending, none twice.
  std::vector<std::size_t> sizes() const;
};

// Parses the command line. Throws Error that names the wrong word.
ReduceOptions parse_reduce_options(std::span<const std::string> words);

// Returns a line for each option that must be equal on all ranks: "-n 20".
std::string compared_text(const ReduceOptions& options);

// Lines of the help on these options.
std::vector<std::string> reduce_help();

}  // namespace cnn::bench
