#include "allreduce/mpi/entry.h"

// The program looks up this name, so the name has C linkage; see world_entry_name.
extern "C" const cnn::allreduce::WorldEntry* cnn_world_entry() {
  return &cnn::allreduce::mpi_entry();
}
