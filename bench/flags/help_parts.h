#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/flags/flag_table.h"

namespace cnn::bench {

// The parts that every form of the help shares: the terminal text, the manual page and the bash
// completion use these parts and the flag table.

struct HelpEntry {
  std::string_view term;
  std::string_view text;
};

// Returns command lines with their effect.
std::span<const HelpEntry> help_examples();
std::span<const HelpEntry> exit_statuses();
std::span<const HelpEntry> environment_variables();

// Returns the flags that most runs need, under headings; an entry's text has the names, separated
// by blanks.
std::span<const HelpEntry> essential_flags();

// Returns whether the flag, or the flag that it is an older name of, can affect a run.
bool acts(const Flag& flag);

// Returns the allowed values for the flag's line in the help: "sgd|adam" or "int".
std::string value_text(const Flag& flag);

// Returns the default in command line syntax, '' for an empty text.
std::string default_text(const Flag& flag);

// Returns the description of the flag, with the reason if the flag has no effect.
std::string description_of(const Flag& flag);

}  // namespace cnn::bench
