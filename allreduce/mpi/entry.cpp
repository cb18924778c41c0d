#include "allreduce/mpi/entry.h"

#include "allreduce/mpi/world.h"

namespace cnn::allreduce {

const WorldEntry& mpi_entry() {
  static constexpr WorldEntry entry{
      .open = [](const WorldOptions& options) -> std::unique_ptr<World> {
        return std::make_unique<MpiWorld>(options);
      }};
  return entry;
}

}  // namespace cnn::allreduce
