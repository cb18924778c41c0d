#include "bench/compare/output_files.h"

#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/file_identity.h"

namespace cnn::compare {
namespace {

struct NamedFile {
  std::string shown;  // as the user wrote it: "--html=page.html", or "run.json" of an input
  std::string path;
};

std::vector<NamedFile> inputs_of(const Arguments& arguments) {
  std::vector<NamedFile> files;
  for (const auto* side : {&arguments.base, &arguments.candidate}) {
    for (const std::string& path : *side) {
      files.push_back({path, path});
    }
  }
  if (arguments.history) {
    files.push_back({"--history=" + *arguments.history, *arguments.history});
  }
  return files;
}

std::vector<NamedFile> outputs_of(const Arguments& arguments) {
  std::vector<NamedFile> files;
  for (const auto& [name, path] : {std::pair{"json", &arguments.json},
                                   {"markdown", &arguments.markdown},
                                   {"html", &arguments.html}}) {
    if (*path && !(*path)->empty()) {
      files.push_back({fmt::format("--{}={}", name, **path), **path});
    }
  }
  return files;
}

// Hard links count as one file, since a report is written into its file.
bool is_same_file(const std::string& a, const std::string& b) {
  const std::string first = file_identity(a), second = file_identity(b);
  std::error_code missing;
  return !first.empty() && !second.empty() &&
         (first == second || std::filesystem::equivalent(a, b, missing));
}

}  // namespace

void check_output_files(const Arguments& arguments) {
  const std::vector<NamedFile> inputs = inputs_of(arguments), outputs = outputs_of(arguments);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const NamedFile& input : inputs) {
      check(!is_same_file(input.path, outputs[i].path),
            fmt::format("{} would replace the file of {}, which is read; write the report into "
                        "another file",
                        outputs[i].shown, input.shown));
    }
    for (std::size_t j = 0; j < i; ++j) {
      check(!is_same_file(outputs[j].path, outputs[i].path),
            fmt::format("{} and {} name the same file, and the second would replace the first; "
                        "give each its own",
                        outputs[j].shown, outputs[i].shown));
    }
  }
}

}  // namespace cnn::compare
