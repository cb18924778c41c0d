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

// How far a job is; images and bytes of this run only.
struct ShardProgress {
  int shards = 0, shards_before = 0;  // complete; of them, by an earlier run
  std::int64_t images = 0, skipped = 0, bytes = 0;
};

// Called after each shard, by one thread at a time.
using ShardListener = std::function<void(const ShardProgress&)>;

// Writes the shards that are missing, several at a time. Each appears under its name when it is
// complete and on the disk. A file <output>/.<subset>.make_records says which images, order and
// number of shards they are of; throws Error if the folder holds shards of others. Throws Error
// that names the file if an image cannot be read, a disk is full and so on.
ShardProgress write_shards(const ShardJob& job, const ShardListener& listener);

// "train-00003-of-00128"
std::string shard_name(const std::string& subset, int shard, int shards);

}  // namespace cnn::records
