#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "data/imagenet/image_files.h"

namespace cnn::records {

struct ShardJob {
  data::ImageFolder images;
  std::filesystem::path output;
  std::string subset;  // "train" or "validation"
  int shards = 1;
  int threads = 1;
  std::uint64_t seed = 0;
  bool skip_broken = false;
};

// The progress of a job. Images and bytes count this run only.
struct ShardProgress {
  int shards = 0, shards_before = 0;  // complete; of them, by an earlier run
  std::int64_t images = 0, skipped = 0, bytes = 0;
};

// Called after each shard, by one thread at a time.
using ShardListener = std::function<void(const ShardProgress&)>;

// Writes the missing shards of a data set, several at a time, and returns the final progress. A
// shard gets its name when it is complete and on disk. The file <output>/.<subset>.make_records
// records the images, their order and the number of shards. Throws Error if the folder contains
// shards of another job, and Error with the file's name if an image cannot be read or a shard
// cannot be written.
ShardProgress write_shards(const ShardJob& job, const ShardListener& listener);

// Returns the file name of a shard, such as "train-00003-of-00128".
std::string shard_name(const std::string& subset, int shard, int shards);

}  // namespace cnn::records
