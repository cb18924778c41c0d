// libFuzzer target: the file that holds the index of records. The checksum at its end is computed
// here, as no mutated file would have it.
#include "data/records/record_index.h"

#include <string>
#include <vector>

#include "data/records/crc32c.h"
#include "data/records/index_file.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace cnn::data;

std::vector<Shard> shards_of_the_corpus() {
  std::vector<Shard> shards;
  for (const char* name : {"train-00000-of-00002", "train-00001-of-00002"}) {
    shards.push_back({.path = name, .bytes = 4096, .modified = 7, .lengths = {}});
  }
  return shards;
}

// Every record of an index that was believed lies within its shard.
void check_places(std::vector<Shard> shards) {
  const RecordIndex index(std::move(shards));
  for (std::int64_t record = 0; record < index.size(); ++record) {
    const RecordLocation place = index[record];
    const std::uint64_t bytes = index.shards().at(place.shard).bytes;
    if (place.offset > bytes || place.bytes + std::uint64_t{16} > bytes - place.offset) {
      __builtin_trap();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Shard> shards = shards_of_the_corpus();
  std::vector<std::uint8_t> bytes(data, data + size);
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(data, size)));
  const auto* checksum = reinterpret_cast<const std::uint8_t*>(&crc);
  bytes.insert(bytes.end(), checksum, checksum + sizeof(crc));
  const cnn::fuzz::MemoryFile file(bytes);
  if (auto known = load_index(file.path(), shards)) {
    check_places(*std::move(known));
  }
  return 0;
}
