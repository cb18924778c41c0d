#include "layers/operands.h"

#include <string>

#include "runtime/error.h"

namespace cnn::layers {

void require(bool ok, const Op& op, std::span<const TensorDesc> in, std::string_view why) {
  if (ok) {
    return;
  }
  std::string text = std::string(op.name()) + ": " + std::string(why) + ", given";
  for (const TensorDesc& desc : in) {
    text.append(" ").append(to_string(desc)).append(";");
  }
  text.back() = '.';
  throw Error(text);
}

void require_count(const Op& op, std::span<const TensorDesc> in, std::size_t count) {
  require(in.size() == count, op, in, "takes " + std::to_string(count) + " operands");
}

}  // namespace cnn::layers
