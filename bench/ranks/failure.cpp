#include "bench/ranks/failure.h"

#include <memory>
#include <optional>
#include <string>

#include "allreduce/transport.h"
#include "bench/ranks/interruption.h"
#include "bench/ranks/launcher.h"
#include "runtime/resource_limits.h"

namespace cnn::bench {

void report_failure(const std::exception& error, allreduce::World* world,
                    const Interruption& interruption, Console& console) {
  const std::string text = failure_text(error);
  if (world == nullptr) {
    console.note_own(text);
    return;
  }
  interruption.disregard();
  const auto* const lost = dynamic_cast<const allreduce::PeerLost*>(&error);
  if (lost != nullptr || !world->rank_0_reports(text)) {
    console.note_own(text);
  }
  world->abort(lost != nullptr ? lost->rank() : world->rank(), text);
}

void report_wrong_flags(const std::exception& error, Console& console) {
  const std::optional<LauncherInfo> by = detect_launcher();
  if (!by || by->ranks.value_or(2) < 2) {
    console.note_own(error.what());
    return;
  }
  console.become_rank(by->rank);
  std::unique_ptr<allreduce::World> world;
  try {
    world = open_world(*by, {}, console);
  } catch (const std::exception&) {  // no MPI: the user must correct the flags first
    console.note_own(error.what());
    return;
  }
  if (!world->rank_0_reports(error.what())) {
    console.note_own(error.what());
  }
  world->abort(world->rank(), error.what());
}

}  // namespace cnn::bench
