#include "allreduce/mpi/entry.h"

// A name without C++'s decoration, which the program looks up; see world_entry_name.
extern "C" const cnn::allreduce::WorldEntry* cnn_world_entry() {
  return &cnn::allreduce::mpi_entry();
}
