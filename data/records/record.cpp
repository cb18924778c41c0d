#include "data/records/record.h"

#include <array>
#include <cstring>
#include <string>

#include "data/records/crc32c.h"

namespace cnn::data {
namespace {

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

template <class Number>
void append_number(std::vector<std::byte>& to, Number number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void check_record(bool ok, const InputFile& file, std::uint64_t offset, std::string_view problem) {
  if (!ok) {
    throw BrokenRecord(broken_record_text(file.path(), offset, problem));
  }
}

bool header_is_valid(std::span<const std::byte> header) {
  return number_at<std::uint32_t>(header, 8) == masked(crc32c(header.first(8)));
}

// Returns whether a file that starts with these bytes is a shard that TensorFlow has compressed.
bool is_gzip(std::span<const std::byte> header) {
  return !header_is_valid(header) && header[0] == std::byte{0x1F} && header[1] == std::byte{0x8B} &&
         header[2] == std::byte{8};
}

// Returns why no record with this header can start with `left` bytes left in the file; empty: one
// can.
std::string problem_of(std::span<const std::byte> header, std::uint64_t left) {
  if (is_gzip(header)) {
    return "the file is compressed; unpack it with gunzip";
  }
  if (!header_is_valid(header)) {
    return "the checksum of its length does not match";
  }
  const auto bytes = number_at<std::uint64_t>(header, 0);
  if (bytes > largest_record) {
    return "its length of " + std::to_string(bytes) + " bytes is more than 1 GiB";
  }
  if (bytes + record_frame_bytes > left) {
    return "it has " + std::to_string(bytes) + " bytes, but the file ends after " +
           std::to_string(left - record_header_bytes);
  }
  return {};
}

}  // namespace

void append_record(std::vector<std::byte>& file, std::span<const std::byte> data) {
  check(data.size() <= largest_record, "a record of more than 1 GiB");
  const std::uint64_t length = data.size();
  append_number(file, length);
  append_number(file, masked(crc32c(std::as_bytes(std::span(&length, 1)))));
  file.insert(file.end(), data.begin(), data.end());
  append_number(file, masked(crc32c(data)));
}

RecordLengths scan_records(const InputFile& file) {
  RecordLengths found;
  std::array<std::byte, record_header_bytes> header{};
  for (std::uint64_t at = 0; at < file.size();) {
    const std::uint64_t left = file.size() - at;
    std::string problem;
    if (left < record_frame_bytes) {
      problem = "the file ends within it";
    } else {
      file.read(at, header);
      problem = problem_of(header, left);
    }
    if (!problem.empty()) {
      found.broken_at = at;
      found.problem = problem;
      break;
    }
    const auto bytes = number_at<std::uint64_t>(header, 0);
    found.bytes.push_back(static_cast<std::uint32_t>(bytes));
    at += bytes + record_frame_bytes;
  }
  return found;
}

std::span<const std::byte> read_record(const InputFile& file, std::uint64_t offset,
                                       std::uint32_t bytes, std::vector<std::byte>& buffer) {
  const std::uint64_t whole = bytes + record_frame_bytes;
  // Checks the file's size first: the requested bytes may come from a damaged index.
  check_record(offset <= file.size() && whole <= file.size() - offset, file, offset,
               "the file ends within it");
  if (buffer.size() < whole) {
    buffer.resize(whole);
  }
  const std::span<std::byte> record = std::span(buffer).first(whole);
  file.read(offset, record);
  const std::string problem = problem_of(record, file.size() - offset);
  check_record(problem.empty(), file, offset, problem);
  check_record(number_at<std::uint64_t>(record, 0) == bytes, file, offset,
               "the file has changed since it was indexed");
  const std::span<const std::byte> data = record.subspan(record_header_bytes, bytes);
  check_record(
      number_at<std::uint32_t>(record, record_header_bytes + bytes) == masked(crc32c(data)), file,
      offset, "the checksum of its data does not match");
  return data;
}

std::string broken_record_text(const std::filesystem::path& file, std::uint64_t offset,
                               std::string_view problem) {
  return file.string() + ": the record at byte " + std::to_string(offset) +
         " is broken: " + std::string(problem) +
         "; copy the file again, or leave broken records out with --skip_broken_records";
}

}  // namespace cnn::data
