#include "allreduce/mpi/help_messages.h"

#include <cstdarg>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <memory>
#include <string>
#include <thread>

namespace cnn::allreduce {
namespace {

// These types are those of symbols that the modules of Open MPI 4 use. No public header has them.
using ShowHelp = int (*)(const char* file, const char* topic, int has_header, ...);
using RenderHelp = char* (*)(const char* file, const char* topic, bool has_header, va_list values);
using SendHelp = int (*)(const char* file, const char* topic, bool has_header, const char* text);

RenderHelp render_help = nullptr;
SendHelp send_help = nullptr;  // blocks until the daemon has the text

template <class Symbol>
Symbol find(const char* name) {
  return reinterpret_cast<Symbol>(::dlsym(RTLD_DEFAULT, name));
}

// Open MPI calls it in place of its own function. A message that finds no thread is dropped: the
// call that has the problem fails in any case.
int show_help_later(const char* file, const char* topic, int has_header, ...) {
  va_list values;
  va_start(values, has_header);
  const std::unique_ptr<char, decltype(&std::free)> text(
      render_help(file, topic, has_header != 0, values), &std::free);
  va_end(values);
  constexpr int success = 0;
  if (text == nullptr) {
    return success;
  }
  try {
    std::thread([file = std::string(file), topic = std::string(topic), has_header,
                 text = std::string(text.get())] {
      send_help(file.c_str(), topic.c_str(), has_header != 0, text.c_str());
    }).detach();
  } catch (const std::exception&) {
    return success;
  }
  return success;
}

}  // namespace

void report_problems_without_waiting() {
  const auto show_help = find<ShowHelp*>("opal_show_help");
  render_help = find<RenderHelp>("opal_show_help_vstring");
  send_help = find<SendHelp>("orte_show_help_norender");  // Only Open MPI 4 and older have it.
  if (show_help != nullptr && render_help != nullptr && send_help != nullptr) {
    *show_help = show_help_later;
  }
}

}  // namespace cnn::allreduce
