#include "tests/support/cuda/nccl/fault.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "runtime/error.h"

namespace cnn::tests::emulated {
namespace {

InjectedFault::Kind kind_of(const std::string& word) {
  using Kind = InjectedFault::Kind;
  static const std::map<std::string, Kind> kinds{{"kill", Kind::kill},
                                                 {"delay", Kind::delay},
                                                 {"error", Kind::error},
                                                 {"refuse", Kind::refuse},
                                                 {"late", Kind::late}};
  const auto found = kinds.find(word);
  check(found != kinds.end(), "CNN_EMULATED_NCCL_FAULT: no fault is called " + word);
  return found->second;
}

}  // namespace

std::optional<InjectedFault> fault_of_environment() {
  const char* const text = std::getenv("CNN_EMULATED_NCCL_FAULT");
  if (text == nullptr) {
    return std::nullopt;
  }
  std::istringstream words(text);
  std::string kind;
  std::getline(words, kind, ':');
  InjectedFault fault{.kind = kind_of(kind)};
  char colon = 0;
  int milliseconds = 0;
  words >> fault.rank >> colon >> fault.reduction;
  check(!words.fail(), "CNN_EMULATED_NCCL_FAULT is KIND:RANK:REDUCTION");
  if (words >> colon >> milliseconds) {
    fault.delay = std::chrono::milliseconds(milliseconds);
  }
  return fault;
}

}  // namespace cnn::tests::emulated
