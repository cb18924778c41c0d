#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace cnn::tests {

struct SuiteLine {
  std::string name;
  std::vector<std::string> flags;
};

// Returns the lines of a suite file without those that scripts/suite.sh skips.
inline std::vector<SuiteLine> suite_lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<SuiteLine> lines;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with('#') || colon == std::string::npos) {
      continue;
    }
    SuiteLine& read = lines.emplace_back(SuiteLine{line.substr(0, colon), {}});
    std::istringstream words(line.substr(colon + 1, line.find(" #") - colon - 1));
    for (std::string word; words >> word;) {
      read.flags.push_back(word);
    }
  }
  return lines;
}

}  // namespace cnn::tests
