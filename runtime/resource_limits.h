#pragma once

#include <exception>
#include <string>

namespace cnn {

// For the start of a program: a file that grows beyond the limit of its size (ulimit -f) is then an
// error of the write, not the death of the process by SIGXFSZ.
void make_file_limit_an_error();

// The system's words for an errno of a write; for the limit of the size of files also what it is
// and how to raise it.
std::string write_problem_text(int problem);

// The limit of this process that may be why it gets no more memory, behind a semicolon; empty if
// there is none.
std::string memory_limit_text();

// Returns the text of an exception in words for a user: where memory ran out, the limits of this
// process that explain it and what to do.
std::string failure_text(const std::exception& error);

}  // namespace cnn
