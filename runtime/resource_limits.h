#pragma once

#include <exception>
#include <string>

namespace cnn {

// Call at program start: a write beyond the file size limit (ulimit -f) then fails with an error
// instead of killing the process by SIGXFSZ.
void make_file_limit_an_error();

// Returns the system's text for the errno of a write; for the file size limit also its value and
// how to raise it.
std::string write_problem_text(int problem);

// Returns a text, after a semicolon, about the limit of this process that may refuse it memory;
// empty if there is no limit.
std::string memory_limit_text();

// Returns the text of an exception for a user: for std::bad_alloc, the limits of this process that
// explain it and the remedy.
std::string failure_text(const std::exception& error);

}  // namespace cnn
