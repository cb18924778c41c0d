#pragma once

namespace cnn::bench {

// Keeps lines whole that a rank writes to the pseudo terminal of its launcher: switches off output
// processing (OPOST), which hands each tab to the launcher apart from the text around it, so that
// parts of a line stand between those of other ranks. Launchers such as Open MPI's switch off the
// conversion of line ends (ONLCR) and leave the rest on. Does nothing where line ends are
// converted, as on a user's terminal, or where the descriptor is no terminal.
void keep_lines_whole(int descriptor);

}  // namespace cnn::bench
