#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/flat_jpeg.h"
#include "tests/support/image_records.h"

namespace cnn::tests {

// The position of a record in a set of shards.
struct ShardRecord {
  std::string shard;  // the file's name
  std::size_t offset = 0, bytes = 0;

  bool operator==(const ShardRecord&) const = default;
  bool operator<(const ShardRecord& other) const {
    return std::tie(shard, offset) < std::tie(other.shard, other.offset);
  }
};

// Writes training shards of grey images with label 1. `records` gives the number of records in each
// shard. Returns the position of every record.
inline std::vector<ShardRecord> write_grey_shards(const TemporaryFolder& folder,
                                                  const std::vector<int>& records) {
  std::vector<ShardRecord> places;
  const std::string count = std::to_string(records.size());
  for (std::size_t shard = 0; shard < records.size(); ++shard) {
    const std::string name = "train-0000" + std::to_string(shard) + "-of-0000" + count;
    std::string file;
    for (int i = 0; i < records[shard]; ++i) {
      const std::string record = ImageRecords::record(FlatJpeg::encode(40 + i, 50, 10 * i), 1);
      places.push_back({.shard = name, .offset = file.size(), .bytes = record.size()});
      file += record;
    }
    folder.write(name, file);
  }
  return places;
}

}  // namespace cnn::tests
