#include "bench/flags/gpu_indices.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "runtime/error.h"

namespace cnn::bench {

std::vector<int> parse_gpu_indices(std::string_view text) {
  std::vector<int> indices;
  for (std::string_view rest = text; !text.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, end);
    int index = -1;
    const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), index);
    check(problem == std::errc() && stop == word.data() + word.size() && index >= 0,
          fmt::format("--gpu_indices={}: \"{}\" is no number of a GPU; give numbers from 0 on with "
                      "commas between, such as 0,1",
                      text, word));
    check(std::ranges::find(indices, index) == indices.end(),
          fmt::format("--gpu_indices={} names GPU {} twice; each rank needs one of its own", text,
                      index));
    indices.push_back(index);
    if (end == rest.size()) {
      break;
    }
    rest.remove_prefix(end + 1);
  }
  return indices;
}

int device_at(std::string_view gpu_indices, int local_rank) {
  const std::vector<int> indices = parse_gpu_indices(gpu_indices);
  if (indices.empty()) {
    return local_rank;
  }
  check(local_rank < static_cast<int>(indices.size()),
        fmt::format("--gpu_indices={} names {} GPU{}, but this host has a rank number {}; name one "
                    "for each of its ranks",
                    gpu_indices, indices.size(), indices.size() == 1 ? "" : "s", local_rank + 1));
  return indices[static_cast<std::size_t>(local_rank)];
}

}  // namespace cnn::bench
