#include "bench/run/team.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <string_view>

#include "allreduce/peer_memory.h"
#include "allreduce/transport.h"
#include "bench/machine/backend.h"
#include "bench/machine/machine_info.h"
#include "bench/run/compile.h"
#include "bench/run/exchange_flags.h"
#include "bench/run/job.h"
#include "bench/run/peers.h"
#include "bench/run/profile.h"
#include "bench/run/rank_exchange.h"
#include "bench/run/rank_lanes.h"
#include "bench/run/rank_thread.h"
#include "bench/run/session.h"
#include "runtime/error.h"

namespace cnn::bench {
StepValues merge(std::span<const StepValues> ranks) {
  StepValues sum;
  for (const StepValues& rank : ranks) {
    sum.seconds = std::max(sum.seconds, rank.seconds);
    sum.input_wait = std::max(sum.input_wait, rank.input_wait);
    sum.base_loss += rank.base_loss;
    sum.l2 += rank.l2;
    sum.top_1 += rank.top_1;
    sum.top_5 += rank.top_5;
  }
  const auto count = static_cast<double>(ranks.size());
  for (double* const value : {&sum.base_loss, &sum.l2, &sum.top_1, &sum.top_5}) {
    *value /= count;
  }
  return sum;
}

std::string exchange_text(const Config& config, const Peers* peers) {
  const std::string_view what =
      config.variable_update == VariableUpdate::independent ? "nothing is exchanged"
      : sums_gradients(config.variable_update)
          ? "gradients and weight decay are summed, as the original's replicated does"
          : "gradients are averaged";
  if (peers == nullptr) {
    return fmt::format("{} ranks on threads of this process: {}", config.num_gpus, what);
  }
  const int hosts = peers->hosts();
  const std::string where = hosts == 1 ? "that share memory"
                            : hosts == peers->ranks()
                                ? "that send messages by MPI"
                                : fmt::format("that share memory on each of {} hosts", hosts);
  return fmt::format("{} ranks in processes {}: {}", peers->ranks(), where, what);
}

// One session with what it computes by. Of several each has a thread, on which all is done.
struct Team::Rank {
  std::optional<Backend> part;  // of the backend, with several ranks
  std::unique_ptr<allreduce::Transport> transport;
  std::unique_ptr<RankExchange> exchange;
  std::unique_ptr<Session> session;
  StepRunner* evaluation = nullptr;  // since begin_evaluation()
  StepValues values;                 // in the step that runs
  Timeline timeline;                 // of the latest that was timed
  std::unique_ptr<RankThread> thread;
};

Team::Team(const Job& job, const Backend& backend, Peers* peers)
    : job_(job), backend_(backend), peers_(peers) {
  const int count = job.config->num_gpus;
  for (int number = 0; number < count; ++number) {
    ranks_.push_back(std::make_unique<Rank>());
  }
  if (count == 1) {
    ranks_.front()->session = std::make_unique<Session>(job, backend);
    return;
  }
  check(backend.for_rank != nullptr, "--num_gpus: this device cannot be divided; use --device=cpu");
  if (job.trains() && job.config->variable_update != VariableUpdate::independent) {
    memory_ = std::make_unique<allreduce::PeerMemory>(allreduce::PeerMemory::of_threads(
        count, peer_memory_options(job.config->comm, backend.memory_limit)));
  }
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    rank->thread = std::make_unique<RankThread>();
  }
  each([&](Rank& rank) {
    const auto place =
        std::ranges::find_if(ranks_, [&](const auto& r) { return r.get() == &rank; });
    build(rank, static_cast<int>(place - ranks_.begin()));
  });
}

Team::~Team() = default;

const Session& Team::first() const { return *ranks_.front()->session; }
Session& Team::first() { return *ranks_.front()->session; }

const Exchange* Team::exchange() const {
  const RankExchange* const first =
      peers_ != nullptr ? &peers_->exchange() : ranks_.front()->exchange.get();
  return first != nullptr && exchanges_gradients(*job_.config) ? &first->rules() : nullptr;
}

void Team::build(Rank& rank, int number) {
  rank.part = backend_.for_rank(*job_.config, number, job_.config->num_gpus);
  if (memory_) {
    connect(rank, number);
  }
  rank.session = std::make_unique<Session>(job_, *rank.part);
}

void Team::connect(Rank& rank, int number) {
  rank.transport = memory_->join(number);
  rank.exchange = std::make_unique<RankExchange>(
      *rank.transport, allreduce::ranks_on_hosts(1, job_.config->num_gpus), *job_.config,
      rank.part->instruction_sets);
  rank.exchange->serve(*rank.part);
}

void Team::each(const std::function<void(Rank&)>& work) {
  if (ranks_.size() == 1) {
    work(*ranks_.front());
    return;
  }
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    rank->thread->start([&work, &of = *rank] {
      try {
        work(of);
      } catch (...) {
        if (of.transport) {
          of.transport->leave(std::nullopt);
        }
        throw;
      }
    });
  }
  std::vector<std::exception_ptr> errors;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    errors.push_back(rank->thread->wait());
  }
  rethrow_cause(errors);
}

void Team::only(Rank& rank, const std::function<void(Rank&)>& work) {
  if (rank.thread == nullptr) {
    work(rank);
    return;
  }
  rank.thread->start([&] { work(rank); });
  rethrow_cause({rank.thread->wait()});
}

StepValues Team::merged() {
  std::vector<StepValues> values;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    values.push_back(rank->values);
  }
  own_ = merge(values);
  StepValues all = peers_ == nullptr ? own_ : merge(peers_->share(own_));
  if (job_.config->variable_update == VariableUpdate::independent) {
    all.l2 *= static_cast<double>(job_.ranks);  // one rank alone has it
  }
  if (peers_ == nullptr) {
    own_ = all;
  }
  return all;
}

void Team::allocate() {
  each([](Rank& rank) { rank.session->allocate(); });
}

std::optional<Restored> Team::restore(const std::string& folder_or_path) {
  std::optional<Restored> restored;
  each([&](Rank& rank) {
    const std::optional<Restored> mine = rank.session->restore(folder_or_path);
    if (&rank == ranks_.front().get()) {
      restored = mine;
    }
  });
  return restored;
}

std::optional<Restored> Team::follow_first(std::optional<Restored> of_first) {
  if (peers_ == nullptr) {
    return of_first;
  }
  const std::string told =
      peers_
          ->gather(of_first ? fmt::format("{} {}", of_first->global_step, of_first->path)
                            : std::string())
          .front();
  Session& session = first();
  session.change_saved(Session::Which::all,
                       [&](std::span<float> values) { peers_->broadcast(values); });
  peers_->compare(fmt::format("weights of hash {:016x}", session.weights_hash()));
  if (told.empty()) {
    return std::nullopt;
  }
  const std::size_t blank = told.find(' ');
  return Restored{.path = told.substr(blank + 1), .global_step = std::stoll(told.substr(0, blank))};
}

void Team::start(std::int64_t global_step) {
  each([&](Rank& rank) { rank.session->start(global_step); });
}

void Team::save(std::int64_t global_step) {
  only(*ranks_.front(), [&](Rank& rank) { rank.session->save(global_step); });
}

StepValues Team::step(std::int64_t global_step, double learning_rate, Timeline* timeline) {
  each([&](Rank& rank) {
    Timeline* const wanted = timeline != nullptr ? &rank.timeline : nullptr;
    rank.values = rank.session->main().run(global_step, learning_rate, wanted);
  });
  if (timeline != nullptr) {
    *timeline = ranks_.front()->timeline;
  }
  return merged();
}

void Team::agree() {
  if (peers_ != nullptr) {
    peers_->share({});
  }
}

void Team::timing_starts() {
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    rank->session->main().forget_times();
    if (rank->exchange) {
      rank->exchange->forget_times();
    }
  }
  if (peers_ != nullptr) {
    peers_->exchange().forget_times();
  }
}

std::vector<std::string> Team::told(const std::function<std::string(Rank&)>& tell) {
  std::vector<std::string> mine;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    only(*rank, [&](Rank& of) { mine.push_back(tell(of)); });
  }
  return peers_ == nullptr ? mine : peers_->gather(mine.front());
}

std::vector<Team::Record> Team::records(double own_images_per_sec) {
  const auto tell = [&](Rank& rank) {
    const RankExchange* const exchange =
        peers_ != nullptr ? &peers_->exchange() : rank.exchange.get();
    return fmt::format("{:016x} {} {} {} {}", rank.session->weights_hash(),
                       exchange == nullptr    ? 0
                       : exchange->is_timed() ? exchange->seconds()
                                              : -1,
                       exchange == nullptr ? 0 : exchange->cpu_seconds(),
                       rank.session->main().exposed_seconds().value_or(-1),
                       own_images_per_sec / static_cast<double>(ranks_.size()));
  };
  std::vector<Record> all;
  for (const std::string& text : told(tell)) {
    std::istringstream words(text);
    Record& record = all.emplace_back();
    words >> record.hash >> record.exchange_seconds >> record.exchange_cpu_seconds >>
        record.exposed_seconds >> record.images_per_sec;
  }
  return all;
}

Json Team::lanes_of_ranks() {
  const std::vector<double> ahead =
      peers_ == nullptr ? std::vector<double>(ranks_.size()) : clocks_ahead(*peers_);
  std::vector<RankLanes> ranks;
  for (const std::string& text : told([](Rank& rank) {
         const StepRunner& runner = rank.session->main();
         return text_of({.start = seconds_of(runner.profile_start()),
                         .lanes = lanes_json(runner.plan(), rank.timeline)});
       })) {
    RankLanes& lanes = ranks.emplace_back(lanes_from(text));
    lanes.start -= ahead[ranks.size() - 1];
    lanes.host = host_of(ranks.size() - 1);
  }
  return by_one_clock(std::move(ranks));
}

std::string Team::host_of(std::size_t rank) const {
  return peers_ == nullptr ? read_machine_info().host : peers_->seats()[rank].host;
}

Json Team::ranks_json(double own_images_per_sec) {
  const std::vector<Record> all = records(own_images_per_sec);
  const bool alike = job_.trains() && job_.config->variable_update != VariableUpdate::independent;
  Json ranks = Json::array();
  for (std::size_t number = 0; number < all.size(); ++number) {
    const Record& record = all[number];
    check(
        !alike || record.hash == all.front().hash,
        fmt::format("the weights of rank {} are not those of rank 0 at the end: do not trust this "
                    "run, and have the machine checked",
                    number));
    ranks.push_back({{"rank", number},
                     {"host", host_of(number)},
                     {"images_per_sec", record.images_per_sec},
                     {"weights_hash", record.hash},
                     {"exchange_seconds",
                      record.exchange_seconds < 0 ? Json(nullptr) : Json(record.exchange_seconds)},
                     {"exchange_cpu_seconds", record.exchange_cpu_seconds},
                     {"exposed_exchange_seconds",
                      record.exposed_seconds < 0 ? Json(nullptr) : Json(record.exposed_seconds)}});
  }
  return ranks;
}

void Team::begin_evaluation() {
  if (peers_ != nullptr && job_.trains()) {
    first().change_saved(Session::Which::statistics,
                         [&](std::span<float> values) { peers_->broadcast(values); });
  }
  each([](Rank& rank) { rank.evaluation = &rank.session->evaluation(); });
}

StepValues Team::evaluation_step(std::int64_t number) {
  each([&](Rank& rank) { rank.values = rank.evaluation->run(number, 0); });
  return merged();
}

}  // namespace cnn::bench
