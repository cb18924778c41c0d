#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/flags/flag_table.h"

namespace cnn::bench {

// The parts that every form of the help shares: the text for a terminal, the manual page and the
// completion of bash are made from these parts and from the flag table.

struct HelpEntry {
  std::string_view term;
  std::string_view text;
};

// A command line and what it does.
std::span<const HelpEntry> help_examples();
std::span<const HelpEntry> exit_statuses();
std::span<const HelpEntry> environment_variables();

// The flags that most runs need, under headings; the text of an entry is the names, with blanks
// between.
std::span<const HelpEntry> essential_flags();

// Returns whether the flag, or the flag that it is an older name of, can change a run.
bool acts(const Flag& flag);

// Returns the values that the flag takes, for its line in the help: "sgd|adam" or "int".
std::string value_text(const Flag& flag);

// Returns the default as the command line writes it, '' for an empty text.
std::string default_text(const Flag& flag);

// Returns the description of the flag; where it does not act, with the reason.
std::string description_of(const Flag& flag);

}  // namespace cnn::bench
