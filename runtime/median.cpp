#include "runtime/median.h"

#include <algorithm>
#include <cstddef>

#include "runtime/error.h"

namespace cnn {

double median(std::vector<double> values) {
  check(!values.empty(), "no values, so there is no median");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace cnn
