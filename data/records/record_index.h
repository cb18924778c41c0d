#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cnn::data {

// A TFRecord file with the lengths of its records.
struct Shard {
  std::filesystem::path path;
  std::uint64_t bytes = 0;             // of the file
  std::int64_t modified = 0;           // nanoseconds since the epoch
  std::vector<std::uint32_t> lengths;  // of the records' data, in the order of the file
};

struct RecordLocation {
  std::size_t shard = 0;
  std::uint64_t offset = 0;  // of the record's header in the file
  std::uint32_t bytes = 0;   // of the record's data
};

// The location of every record of a data set by its number. Records are counted through the shards
// in the order of their names.
class RecordIndex {
 public:
  explicit RecordIndex(std::vector<Shard> shards);

  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
  RecordLocation operator[](std::int64_t record) const;
  const std::vector<Shard>& shards() const { return shards_; }
  std::uint64_t bytes() const;  // of all shards

 private:
  std::vector<Shard> shards_;
  std::vector<std::int64_t> first_;    // number of each shard's first record
  std::vector<std::uint64_t> places_;  // offsets in the shards
};

struct IndexOptions {
  std::filesystem::path dir;
  std::string subset;  // "train" or "validation": the files <subset>-*-of-*
  bool skip_broken = false;
};

// Returns whether the folder has any shard of the subset.
bool has_record_shards(const IndexOptions& options);

struct OpenedIndex {
  RecordIndex index;
  bool was_built = false;            // false: read from the file of an earlier run
  std::vector<std::string> notices;  // about missing and empty shards and skipped ends of shards
};

// Returns the index of the shards in a folder: from the file that an earlier run left beside them
// or in the cache folder, unless a shard has another size or time than then; else by reading all
// headers, and saves it. Throws Error if there are no shards, or a shard is broken and skip_broken
// does not allow it.
OpenedIndex open_record_index(const IndexOptions& options);

// Returns the paths where the index of a folder may be, best first.
std::vector<std::filesystem::path> index_paths(const IndexOptions& options);

}  // namespace cnn::data
