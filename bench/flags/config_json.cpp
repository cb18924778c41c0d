#include "bench/flags/config_json.h"

#include <string>
#include <variant>

#include "bench/flags/flag_table.h"

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

Json config_json(const Config& config) {
  Json json = Json::object();
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      if (flag.renamed_to.empty()) {
        json[std::string(flag.name)] = std::visit(ToJson{}, plain_value(flag, config));
      }
    }
  }
  return json;
}

}  // namespace cnn::bench
