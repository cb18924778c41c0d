#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/file.h"
#include "runtime/error.h"

namespace cnn::data {

// One record of a TFRecord file: length (8 bytes, little-endian), masked CRC-32C of the length,
// data, masked CRC-32C of the data.
constexpr std::uint64_t record_header_bytes = 12;
constexpr std::uint64_t record_footer_bytes = 4;
constexpr std::uint64_t record_frame_bytes = record_header_bytes + record_footer_bytes;
// Larger records count as damaged; photographs have about 100 KiB.
constexpr std::uint64_t largest_record = std::uint64_t{1} << 30;

// The error of damaged content, as opposed to an unreadable file: --skip_broken_records skips only
// the former.
class BrokenRecord : public Error {
 public:
  using Error::Error;
};

// Appends the record that holds `data`. Throws Error if it is larger than largest_record.
void append_record(std::vector<std::byte>& file, std::span<const std::byte> data);

// The data lengths of all records of a file, in order.
struct RecordLengths {
  std::vector<std::uint32_t> bytes;
  // The offset of a broken header, after which the file is unreadable, and the problem; nothing:
  // the file ends with its last record.
  std::optional<std::uint64_t> broken_at;
  std::string problem;
};

// Reads only the headers and checks each length against the file's size before using it.
RecordLengths scan_records(const InputFile& file);

// Reads the record whose header starts at `offset` and whose data has `bytes` bytes into `buffer`,
// checks both checksums and returns the data within the buffer. Throws Error that names file and
// offset.
std::span<const std::byte> read_record(const InputFile& file, std::uint64_t offset,
                                       std::uint32_t bytes, std::vector<std::byte>& buffer);

// Returns the message for a broken record: file, offset, what is wrong and what to do.
std::string broken_record_text(const std::filesystem::path& file, std::uint64_t offset,
                               std::string_view problem);

}  // namespace cnn::data
