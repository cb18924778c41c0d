#include "data/records/image_example.h"

#include <array>
#include <bit>
#include <optional>
#include <string_view>

#include "data/records/protobuf.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

using WireType = ProtobufReader::WireType;
using Field = ProtobufReader::Field;
using Bytes = std::span<const std::byte>;

// Field numbers of tensorflow/core/example: Example.features, Features.feature (a map), key and
// value of its entries, the three kinds of Feature, and their list of values.
constexpr std::uint64_t features_field = 1, feature_field = 1, key_field = 1, value_field = 2;
constexpr std::uint64_t bytes_kind = 1, float_kind = 2, int64_kind = 3, list_field = 1;

constexpr std::array<std::string_view, 4> box_keys{
    "image/object/bbox/ymin", "image/object/bbox/xmin", "image/object/bbox/ymax",
    "image/object/bbox/xmax"};

Bytes bytes_of(const Field& field, std::string_view what) {
  check(field.type == WireType::bytes, std::string(what) + " is no message");
  return field.bytes;
}

// Returns the list of the expected kind in a Feature; nothing if the feature is empty.
std::optional<Bytes> list_of(Bytes feature, std::uint64_t kind, std::string_view name) {
  ProtobufReader reader(feature);
  std::optional<Bytes> list;
  while (const std::optional<Field> field = reader.next()) {
    if (field->number == bytes_kind || field->number == float_kind || field->number == int64_kind) {
      check(field->number == kind, "its feature " + std::string(name) + " has the wrong type");
      list = bytes_of(*field, name);
    }
  }
  return list;
}

std::optional<Bytes> first_bytes(Bytes feature, std::string_view name) {
  const std::optional<Bytes> list = list_of(feature, bytes_kind, name);
  ProtobufReader reader(list.value_or(Bytes()));
  while (const std::optional<Field> field = reader.next()) {
    if (field->number == list_field) {
      return bytes_of(*field, name);
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> first_integer(Bytes feature, std::string_view name) {
  const std::optional<Bytes> list = list_of(feature, int64_kind, name);
  ProtobufReader reader(list.value_or(Bytes()));
  while (const std::optional<Field> field = reader.next()) {
    if (field->number == list_field && field->type == WireType::varint) {
      return static_cast<std::int64_t>(field->value);
    }
    if (field->number == list_field && field->type == WireType::bytes && !field->bytes.empty()) {
      return static_cast<std::int64_t>(ProtobufReader(field->bytes).varint());  // packed
    }
  }
  return std::nullopt;
}

float as_float(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

std::vector<float> floats(Bytes feature, std::string_view name) {
  const std::optional<Bytes> list = list_of(feature, float_kind, name);
  ProtobufReader reader(list.value_or(Bytes()));
  std::vector<float> values;
  while (const std::optional<Field> field = reader.next()) {
    if (field->number == list_field && field->type == WireType::fixed32) {
      values.push_back(as_float(field->value));
    } else if (field->number == list_field && field->type == WireType::bytes) {
      ProtobufReader packed(field->bytes);
      while (!packed.at_end()) {
        values.push_back(as_float(packed.fixed(sizeof(float))));
      }
    }
  }
  return values;
}

struct Features {
  std::optional<Bytes> encoded;
  std::optional<std::int64_t> label;
  std::array<std::vector<float>, box_keys.size()> edges;  // in the order of box_keys
};

void read_feature(std::string_view key, Bytes value, Features& into) {
  if (key == "image/encoded") {
    into.encoded = first_bytes(value, key);
  } else if (key == "image/class/label") {
    into.label = first_integer(value, key);
  }
  for (std::size_t edge = 0; edge < box_keys.size(); ++edge) {
    if (key == box_keys[edge]) {
      into.edges[edge] = floats(value, key);
    }
  }
}

void read_entry(Bytes entry, Features& into) {
  ProtobufReader reader(entry);
  Bytes key, value;
  while (const std::optional<Field> field = reader.next()) {
    if (field->number == key_field) {
      key = bytes_of(*field, "a feature's name");
    } else if (field->number == value_field) {
      value = bytes_of(*field, "a feature");
    }
  }
  read_feature({reinterpret_cast<const char*>(key.data()), key.size()}, value, into);
}

Features read_features(Bytes record) {
  Features features;
  ProtobufReader example(record);
  while (const std::optional<Field> field = example.next()) {
    if (field->number != features_field) {
      continue;
    }
    ProtobufReader entries(bytes_of(*field, "features"));
    while (const std::optional<Field> entry = entries.next()) {
      if (entry->number == feature_field) {
        read_entry(bytes_of(*entry, "a feature"), features);
      }
    }
  }
  return features;
}

void append_feature(ProtobufWriter& features, std::string_view name, std::uint64_t kind,
                    const ProtobufWriter& list) {
  ProtobufWriter feature, entry;
  feature.bytes_field(kind, list.message());
  entry.bytes_field(key_field, name);
  entry.bytes_field(value_field, feature.message());
  features.bytes_field(feature_field, entry.message());
}

void append_bytes(ProtobufWriter& features, std::string_view name, Bytes bytes) {
  ProtobufWriter list;
  list.bytes_field(list_field, bytes);
  append_feature(features, name, bytes_kind, list);
}

void append_text(ProtobufWriter& features, std::string_view name, std::string_view text) {
  append_bytes(features, name, std::as_bytes(std::span(text)));
}

void append_integer(ProtobufWriter& features, std::string_view name, std::int64_t number) {
  ProtobufWriter packed, list;
  packed.varint(static_cast<std::uint64_t>(number));
  list.bytes_field(list_field, packed.message());
  append_feature(features, name, int64_kind, list);
}

void append_edges(ProtobufWriter& features, std::string_view name, const std::vector<Box>& boxes,
                  float Box::*edge) {
  ProtobufWriter packed, list;
  for (const Box& box : boxes) {
    packed.append_fixed32(std::bit_cast<std::uint32_t>(box.*edge));
  }
  list.bytes_field(list_field, packed.message());
  append_feature(features, name, float_kind, list);
}

}  // namespace

ImageExample parse_image_example(std::span<const std::byte> record) {
  const Features features = read_features(record);
  check(features.encoded.has_value(), "it has no feature image/encoded");
  check(features.label.has_value(), "it has no feature image/class/label");
  ImageExample example{.encoded = *features.encoded, .label = *features.label};
  const auto& [ymin, xmin, ymax, xmax] = features.edges;
  check(ymin.size() == xmin.size() && ymin.size() == ymax.size() && ymin.size() == xmax.size(),
        "its boxes (image/object/bbox) have different numbers of edges");
  for (std::size_t i = 0; i < ymin.size(); ++i) {
    example.boxes.push_back({ymin[i], xmin[i], ymax[i], xmax[i]});
  }
  return example;
}

std::vector<std::byte> image_example_record(const ImageFeatures& image) {
  ProtobufWriter features, example;
  append_integer(features, "image/height", image.height);
  append_integer(features, "image/width", image.width);
  append_integer(features, "image/channels", image.channels);
  append_text(features, "image/colorspace", "RGB");
  append_text(features, "image/format", image.format);
  append_text(features, "image/filename", image.file_name);
  append_integer(features, "image/class/label", image.label);
  append_text(features, "image/class/synset", image.synset);
  append_text(features, "image/class/text", image.text);
  append_edges(features, box_keys[0], image.boxes, &Box::ymin);
  append_edges(features, box_keys[1], image.boxes, &Box::xmin);
  append_edges(features, box_keys[2], image.boxes, &Box::ymax);
  append_edges(features, box_keys[3], image.boxes, &Box::xmax);
  append_bytes(features, "image/encoded", image.encoded);
  example.bytes_field(features_field, features.message());
  return example.message();
}

}  // namespace cnn::data
