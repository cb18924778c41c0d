#include "bench/run/failure.h"

#include "allreduce/transport.h"
#include "bench/run/interruption.h"

namespace cnn::bench {

void tell_failure(const std::exception& error, allreduce::World* world,
                  const Interruption& interruption, Console& console) {
  if (world == nullptr) {
    console.note_own(error.what());
    return;
  }
  interruption.disregard();
  const auto* const lost = dynamic_cast<const allreduce::PeerLost*>(&error);
  if (lost != nullptr || !world->first_says(error.what())) {
    console.note_own(error.what());
  }
  world->give_up(lost != nullptr ? lost->rank() : world->rank(), error.what());
}

}  // namespace cnn::bench
