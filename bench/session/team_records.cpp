// Gathers the reports of a team's ranks at the end of a run.
#include <fmt/format.h>

#include "bench/flags/conditions.h"
#include "bench/machine/machine_info.h"
#include "bench/plan/job.h"
#include "bench/ranks/peers.h"
#include "bench/ranks/rank_exchange.h"
#include "bench/ranks/rank_lanes.h"
#include "bench/session/op_profile.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "bench/session/team_rank.h"
#include "runtime/error.h"

namespace cnn::bench {

std::vector<Team::Record> Team::records(double own_images_per_sec) {
  return of_all_ranks([&](Rank& rank) {
    const RankExchange* const exchange = exchange_of(rank);
    Record record{.weights_hash = rank.session->weights_hash(),
                  .images_per_sec = own_images_per_sec / static_cast<double>(ranks_.size()),
                  .exposed_seconds = rank.session->main().exposed_seconds().value_or(-1)};
    if (exchange != nullptr) {
      record.exchange_seconds = exchange->is_timed() ? exchange->seconds() : -1;
      record.exchange_cpu_seconds = exchange->cpu_seconds();
    }
    return record;
  });
}

Json Team::lanes_of_ranks() {
  const std::vector<double> ahead =
      peers_ == nullptr ? std::vector<double>(ranks_.size()) : clocks_ahead(*peers_);
  std::vector<RankLanes> ranks;
  for (const LanesMessage& message : of_all_ranks([](Rank& rank) {
         const StepRunner& runner = rank.session->main();
         return message_of({.start = seconds_of(runner.profile_start()),
                            .lanes = lanes_json(runner.plan(), rank.timeline)});
       })) {
    RankLanes& lanes = ranks.emplace_back(lanes_of(message));
    lanes.start -= ahead[(ranks.size() - 1) / (peers_ == nullptr ? 1 : ranks_.size())];
    lanes.host = host_of(ranks.size() - 1);
  }
  return by_one_clock(std::move(ranks));
}

std::string Team::host_of(std::size_t rank) const {
  return peers_ == nullptr ? read_machine_info().host
                           : peers_->placements()[rank / ranks_.size()].host;
}

Json Team::ranks_json(double own_images_per_sec) {
  const std::vector<Record> all = records(own_images_per_sec);
  const bool alike =
      job_.trains() && (job_.config->variable_update != VariableUpdate::independent ||
                        repeats_on_all_ranks(*job_.config));
  const std::vector<int>& nodes = topology_.numa_node_of;
  Json ranks = Json::array();
  for (std::size_t number = 0; number < all.size(); ++number) {
    const Record& record = all[number];
    check(
        !alike || record.weights_hash == all.front().weights_hash,
        fmt::format("the weights of rank {} are not those of rank 0 at the end: do not trust this "
                    "run, and have the machine checked",
                    number));
    ranks.push_back({{"rank", number},
                     {"host", host_of(number)},
                     {"numa_node", nodes.empty() ? Json(nullptr) : Json(nodes[number])},
                     {"images_per_sec", record.images_per_sec},
                     {"weights_hash", fmt::format("{:016x}", record.weights_hash)},
                     {"exchange_seconds",
                      record.exchange_seconds < 0 ? Json(nullptr) : Json(record.exchange_seconds)},
                     {"exchange_cpu_seconds", record.exchange_cpu_seconds},
                     {"exposed_exchange_seconds",
                      record.exposed_seconds < 0 ? Json(nullptr) : Json(record.exposed_seconds)}});
  }
  return ranks;
}

}  // namespace cnn::bench
