#include "bench/flags/config_json.h"

#include <string>
#include <variant>

namespace cnn::bench {
namespace {

struct ToJson {
  Json operator()(std::monostate) const { return nullptr; }
  template <class Value>
  Json operator()(const Value& value) const {
    return value;
  }
};

}  // namespace

Json config_json(std::span<const Setting> settings) {
  Json json = Json::object();
  for (const Setting& setting : settings) {
    json[std::string(setting.flag->name)] = std::visit(ToJson{}, setting.value);
  }
  return json;
}

}  // namespace cnn::bench
