#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/files.h"

namespace cnn::tests {

// Reads TensorBoard's event files without any code of their writer.

inline std::uint32_t slow_crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
    }
  }
  return ~crc;
}

template <class Number>
Number number_in(std::string_view bytes, std::size_t at) {
  Number number{};
  if (at + sizeof(number) > bytes.size()) {
    throw std::runtime_error("cut off");
  }
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// Returns the data of each record of a TFRecord file. Throws if a checksum or a length is wrong.
inline std::vector<std::string> records_of(std::string_view file) {
  constexpr std::size_t header = 12, footer = 4;
  std::vector<std::string> records;
  const auto expect_checksum = [&](std::string_view data, std::size_t at) {
    const std::uint32_t crc = slow_crc32c(data);
    if (number_in<std::uint32_t>(file, at) != std::rotr(crc, 15) + 0xA282EAD8U) {
      throw std::runtime_error("wrong checksum");
    }
  };
  for (std::size_t at = 0; at < file.size();) {
    const auto length = static_cast<std::size_t>(number_in<std::uint64_t>(file, at));
    expect_checksum(file.substr(at, 8), at + 8);
    if (at + header + length + footer > file.size()) {
      throw std::runtime_error("cut off");
    }
    records.emplace_back(file.substr(at + header, length));
    expect_checksum(records.back(), at + header + length);
    at += header + length + footer;
  }
  return records;
}

// Returns the fields of a protocol buffer by number, in their order. Varints become eight bytes;
// all other fields become their own bytes.
inline std::multimap<std::uint64_t, std::string> fields_of(std::string_view message) {
  std::multimap<std::uint64_t, std::string> fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0) {
        return value;
      }
    }
  };
  while (at < message.size()) {
    const std::uint64_t key = varint();
    std::size_t bytes = (key & 7U) == 1 ? 8 : 4;
    if ((key & 7U) == 0) {
      const std::uint64_t value = varint();
      std::string text(sizeof(value), '\0');
      std::memcpy(text.data(), &value, sizeof(value));
      fields.emplace(key >> 3U, text);
      continue;
    }
    if ((key & 7U) == 2) {
      bytes = static_cast<std::size_t>(varint());
    }
    fields.emplace(key >> 3U, std::string(message.substr(at, bytes)));
    at += bytes;
  }
  return fields;
}

inline std::string field(const std::multimap<std::uint64_t, std::string>& fields,
                         std::uint64_t number) {
  const auto found = fields.find(number);
  return found == fields.end() ? std::string() : found->second;
}

struct EventValue {
  float scalar = 0;
  std::string image, histogram;  // messages; empty if the value is of another kind
};

struct ReadEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version, graph, session_log;
  std::map<std::string, EventValue> values;  // values by tag
};

inline EventValue value_of(const std::multimap<std::uint64_t, std::string>& fields) {
  EventValue value{.scalar = 0, .image = field(fields, 4), .histogram = field(fields, 5)};
  if (const std::string bytes = field(fields, 2); !bytes.empty()) {
    value.scalar = number_in<float>(bytes, 0);
  }
  return value;
}

inline ReadEvent event_of(std::string_view message) {
  const auto fields = fields_of(message);
  ReadEvent event{.wall_time = number_in<double>(field(fields, 1), 0),
                  .step = 0,
                  .version = field(fields, 3),
                  .graph = field(fields, 4),
                  .session_log = field(fields, 7),
                  .values = {}};
  if (const std::string step = field(fields, 2); !step.empty()) {
    event.step = number_in<std::int64_t>(step, 0);
  }
  const auto summary = fields_of(field(fields, 5));
  for (auto [value, end] = summary.equal_range(1); value != end; ++value) {
    const auto inner = fields_of(value->second);
    event.values[field(inner, 1)] = value_of(inner);
  }
  return event;
}

// Returns the event files of a folder in the order in which TensorBoard reads them.
inline std::vector<std::string> event_files(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::vector<ReadEvent> read_events(const std::filesystem::path& file) {
  std::vector<ReadEvent> events;
  for (const std::string& record : records_of(read_file(file))) {
    events.push_back(event_of(record));
  }
  return events;
}

}  // namespace cnn::tests
