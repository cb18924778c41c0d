#include "data/records/index_file.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "data/file.h"
#include "data/records/crc32c.h"
#include "data/records/record.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

constexpr std::string_view magic = "cnn record index 1\n";
constexpr std::uint64_t largest_index = std::uint64_t{4} << 30;

class IndexWriter {
 public:
  IndexWriter() { text(magic); }
  void number(std::uint64_t value) { append(std::as_bytes(std::span(&value, 1))); }
  void text(std::string_view value) { append(std::as_bytes(std::span(value))); }
  void append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Checks every count against the remaining bytes before it allocates.
class IndexReader {
 public:
  explicit IndexReader(std::span<const std::byte> bytes) : left_(bytes) {}
  std::span<const std::byte> take(std::uint64_t bytes) {
    check(bytes <= left_.size(), "the index ends early");
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string_view text(std::uint64_t bytes) {
    const auto taken = take(bytes);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  bool at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
};

std::vector<std::uint32_t> read_lengths(IndexReader& reader, std::uint64_t shard_bytes) {
  const std::uint64_t count = reader.number();
  check(count <= shard_bytes / record_frame_bytes, "more records than the shard can hold");
  const auto bytes = reader.take(count * sizeof(std::uint32_t));
  std::vector<std::uint32_t> lengths(count);
  if (count > 0) {  // memcpy may not be given the null pointer of an empty vector
    std::memcpy(lengths.data(), bytes.data(), bytes.size());
  }
  std::uint64_t end = 0;
  for (const std::uint32_t length : lengths) {
    end += length + record_frame_bytes;
  }
  check(end <= shard_bytes, "records beyond the shard's end");
  return lengths;
}

std::vector<Shard> parse_index(std::span<const std::byte> bytes, std::span<const Shard> shards) {
  check(bytes.size() > magic.size() + sizeof(std::uint32_t), "the index is too short");
  const auto body = bytes.first(bytes.size() - sizeof(std::uint32_t));
  std::uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + body.size(), sizeof(crc));
  check(crc == crc32c(body), "the index is damaged");
  IndexReader reader(body);
  check(reader.text(magic.size()) == magic, "another format");
  check(reader.number() == shards.size(), "another number of shards");
  std::vector<Shard> read(shards.begin(), shards.end());
  for (Shard& shard : read) {
    check(reader.text(reader.number()) == shard.path.filename().string(), "another shard");
    check(reader.number() == shard.bytes, "a shard of another size");
    check(reader.number() == static_cast<std::uint64_t>(shard.modified), "a shard that changed");
    shard.lengths = read_lengths(reader, shard.bytes);
  }
  check(reader.at_end(), "more than the index needs");
  return read;
}

}  // namespace

std::optional<std::vector<Shard>> load_index(const std::filesystem::path& file,
                                             std::span<const Shard> shards) {
  std::error_code missing;
  if (!std::filesystem::exists(file, missing)) {
    return std::nullopt;
  }
  try {
    check(InputFile(file).size() <= largest_index, "an index of more than 4 GiB");
    return parse_index(read_whole(file), shards);
  } catch (const Error&) {
    return std::nullopt;  // the index is rebuilt and replaces this file
  }
}

bool save_index(const std::filesystem::path& file, std::span<const Shard> shards) {
  IndexWriter writer;
  writer.number(shards.size());
  for (const Shard& shard : shards) {
    const std::string name = shard.path.filename().string();
    writer.number(name.size());
    writer.text(name);
    writer.number(shard.bytes);
    writer.number(static_cast<std::uint64_t>(shard.modified));
    writer.number(shard.lengths.size());
    writer.append(std::as_bytes(std::span(shard.lengths)));
  }
  const std::uint32_t crc = crc32c(writer.bytes());
  writer.append(std::as_bytes(std::span(&crc, 1)));
  // Ranks may save the same index concurrently, so each writes under a separate name.
  const std::filesystem::path own = file.string() + "." + std::to_string(::getpid());
  try {
    AtomicFile output(own);
    output.write(writer.bytes());
    output.commit();
  } catch (const Error&) {
    return false;
  }
  std::error_code failed;
  std::filesystem::rename(own, file, failed);
  if (failed) {
    std::filesystem::remove(own, failed);
    return false;
  }
  return true;
}

}  // namespace cnn::data
