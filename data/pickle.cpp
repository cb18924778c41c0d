#include "data/pickle.h"

#include <utility>

#include "data/pickle_machine.h"

namespace cnn::data {

Pickle::Pickle(std::vector<std::byte> file) : file_(std::move(file)) {
  PickleMachine machine(file_);
  root_ = machine.run();
  values_ = machine.take_values();
  owned_ = machine.take_owned();
}

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
  using Kind = PickleValue::Kind;
  const PickleValue* found = nullptr;
  if (dict.kind != Kind::dict) {
    return found;
  }
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& candidate = at(dict.items[i]);
    if ((candidate.kind == Kind::text || candidate.kind == Kind::bytes) &&
        candidate.text() == key) {
      found = &at(dict.items[i + 1]);  // a later one replaces an earlier one
    }
  }
  return found;
}

}  // namespace cnn::data
