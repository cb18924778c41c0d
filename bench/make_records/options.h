#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cnn::records {

// The options of a run of make_records, as its command line gives them.
struct Options {
  std::string images;  // a folder with train/<class>/ and perhaps val/<class>/
  std::string output;  // the folder of the shards
  int train_shards = 0, validation_shards = 0;  // 0: by the number of images
  int threads = 0;                              // 0: as many as the machine has processors
  std::string class_list;                       // as --class_list of cnn_benchmarks; empty: none
  std::uint64_t seed = 1234;                    // of the images' order
  bool skip_broken = false;
  bool help = false;
};

// Throws Error for words that make no sense, saying which.
Options parse_options(std::span<const std::string> words);
std::string_view help_text();

}  // namespace cnn::records
