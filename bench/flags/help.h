#pragma once

#include <string>

#include "bench/flags/config.h"

namespace cnn::bench {

// Returns the text for the help flags of the configuration, ending with a line break: --help the
// flags that most runs need, --helpshort one line for each of them, --helpfull all flags,
// --help=TOPIC one group or the flags that mention a word. --help_format selects a manual page or
// bash completion of all flags. Throws Error if no flag matches the topic.
std::string help_text(const HelpFlags& help);

}  // namespace cnn::bench
