#include "bench/machine/add_backend.h"

namespace cnn::bench {

void add_backend(std::vector<BackendKind>& /*kinds*/) {}

}  // namespace cnn::bench
