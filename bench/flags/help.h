#pragma once

#include <string>

#include "bench/flags/config.h"

namespace cnn::bench {

// Returns the text that the help flags of the configuration ask for, ending with a line break:
// --help the flags that most runs need, --helpshort one line for each of them, --helpfull all
// flags, --help=TOPIC one group or the flags that mention a word. --help_format makes a manual page
// or a completion for bash of all flags. Throws Error where nothing is about the topic.
std::string help_text(const HelpFlags& help);

}  // namespace cnn::bench
