#pragma once

#include <span>
#include <string_view>

#include "bench/flags/flag_syntax.h"
#include "bench/flags/settings.h"

namespace cnn::bench {

// Returns whether the flag connects the processes of upstream's clusters, such as --job_name and
// --worker_hosts. Here mpirun connects them.
bool is_cluster_flag(std::string_view name);

// Throws Error if one of these flags is set: a line that ends with the mpirun command that starts
// the same ranks of the program at this path with the remaining flags, or that names the wrong
// flag. launched: mpirun has started this process.
void refuse_cluster_flags(std::span<const Setting> settings, const Arguments& arguments,
                          std::string_view program, bool launched);

}  // namespace cnn::bench
