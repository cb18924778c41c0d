#include "runtime/error.h"

namespace cnn {

Error::Error(std::string_view what, std::source_location at)
    : std::runtime_error(std::string(what)), where_(at) {}

}  // namespace cnn
