#include "bench/session/team.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <string_view>

#include "allreduce/shared_memory.h"
#include "allreduce/transport.h"
#include "bench/flags/conditions.h"
#include "bench/plan/compile.h"
#include "bench/plan/job.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/peers.h"
#include "bench/ranks/rank_context.h"
#include "bench/ranks/rank_exchange.h"
#include "bench/ranks/rank_lanes.h"
#include "bench/ranks/rank_nodes.h"
#include "bench/ranks/rank_thread.h"
#include "bench/ranks/shared_link.h"
#include "bench/session/op_profile.h"
#include "bench/session/rank_check.h"
#include "bench/session/session.h"
#include "bench/session/step_samples.h"
#include "bench/session/team_rank.h"
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

Team::Team(const Job& job, const RankContext& context, Peers* peers)
    : job_(job), context_(context), peers_(peers), topology_(topology_of_run(*job.config, peers)) {
  const int count = job.config->num_gpus;
  for (int number = 0; number < count; ++number) {
    ranks_.push_back(std::make_unique<Rank>());
  }
  if (count > 1) {
    start_ranks();
  }
  make_sessions();
}

void Team::start_ranks() {
  const int count = job_.config->num_gpus;
  check(context_.backend.for_rank != nullptr,
        "--num_gpus: this device cannot be divided; use --device=cpu");
  if (peers_ == nullptr && exchanges_gradients(*job_.config)) {
    memory_ = std::make_unique<allreduce::SharedMemory>(allreduce::SharedMemory::for_threads(
        count, shared_memory_options(job_.config->comm, segment_bytes_of(context_.memory))));
  }
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    rank->thread = std::make_unique<RankThread>();
  }
  const auto number_of = [&](const Rank& rank) {
    const auto place =
        std::ranges::find_if(ranks_, [&](const auto& r) { return r.get() == &rank; });
    return static_cast<int>(place - ranks_.begin());
  };
  each([&](Rank& rank) { build(rank, number_of(rank)); });
  // A rank without a device has failed by now, so no other rank waits for it to connect.
  if (exchanges_gradients(*job_.config)) {
    each([&](Rank& rank) { connect(rank, number_of(rank)); });
  }
  if (job_.config->lms.enabled) {
    equalize_memory();
  }
}

bool Team::is_first(const Rank& rank) const {
  return &rank == ranks_.front().get() && (peers_ == nullptr || peers_->rank() == 0);
}

Team::~Team() = default;

const Session& Team::first() const { return *ranks_.front()->session; }
Session& Team::first() { return *ranks_.front()->session; }

const Exchange* Team::exchange() const {
  const RankExchange* const first = exchange_of(*ranks_.front());
  return first != nullptr && exchanges_gradients(*job_.config) ? &first->rules() : nullptr;
}

RankExchange* Team::exchange_of(const Rank& rank) const {
  return rank.exchange || peers_ == nullptr ? rank.exchange.get() : peers_->exchange();
}

void Team::build(Rank& rank, int number) {
  const int count = job_.config->num_gpus;
  Config placed = with_shared_link(*job_.config, peers_);
  placed.gpu.ordinal = (peers_ != nullptr ? peers_->local_rank() * count : 0) + number;
  Backend& backend = rank.backend.emplace(context_.backend.for_rank(placed, number, count));
  if (context_.backend.disk) {
    backend.disk = context_.backend.disk->shared_by(count);
  }
  const std::size_t bytes = divisible_bytes(context_.backend, context_.memory);
  rank.context.emplace(
      RankContext{.backend = backend,
                  .rank = context_.rank * count + number,
                  .ranks = context_.ranks * count,
                  .memory = share_of_memory(backend, bytes, static_cast<std::size_t>(count)),
                  .kernels = backend.kernels});
}

// All ranks share one --lms plan, made for the smallest memory of a rank.
void Team::equalize_memory() {
  std::size_t device = std::numeric_limits<std::size_t>::max(), host = device;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    device = std::min(device, rank->context->memory.device);
    host = std::min(host, rank->context->memory.host.value_or(0));
  }
  if (peers_ != nullptr) {
    device = peers_->least(device);
    host = peers_->least(host);
  }
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    RankContext level = *std::move(rank->context);
    level.memory.device = device;
    level.memory.host = level.memory.host ? std::optional(host) : std::nullopt;
    rank->context.emplace(std::move(level));
  }
}

void Team::connect(Rank& rank, int number) {
  rank.transport = peers_ != nullptr ? peers_->join(number) : memory_->join(number);
  rank.exchange = std::make_unique<RankExchange>(*rank.transport, topology_, *job_.config,
                                                 rank.backend->instruction_sets);
  RankContext exchanging = rank.exchange->serve(*std::move(rank.context));
  rank.context.emplace(std::move(exchanging));
}

void Team::leave(Rank& rank, int culprit) {
  if (rank.transport) {
    rank.transport->leave(culprit == allreduce::any_rank ? rank.transport->rank() : culprit);
  }
}

void Team::each(const std::function<void(Rank&)>& work) {
  if (ranks_.size() == 1) {
    work(*ranks_.front());
    return;
  }
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    rank->thread->start([&work, &of = *rank] {
      // Other ranks may wait for a device that waits for this rank, which no message ends: they
      // check whom a failed rank blames.
      try {
        work(of);
      } catch (const allreduce::PeerLost& lost) {
        leave(of, lost.rank());
        throw;
      } catch (...) {
        leave(of, allreduce::any_rank);
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
  StepValues all = peers_ == nullptr ? own_ : merge(peers_->share(own_, own_word()));
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
  only(*ranks_.front(), [&](Rank& rank) { restored = rank.session->restore(folder_or_path); });
  return restored;
}

void Team::spread(Spread what) {
  const auto which = what == Spread::all ? Session::Which::all : Session::Which::statistics;
  std::vector<float> values;  // of the first rank of this process, contiguous
  only(*ranks_.front(), [&](Rank& rank) {
    rank.session->change_saved(which, [&](std::span<float> some) {
      if (peers_ != nullptr) {
        peers_->broadcast(some);
      }
      if (ranks_.size() > 1) {
        values.insert(values.end(), some.begin(), some.end());
      }
    });
  });
  each([&](Rank& rank) {
    auto next = values.begin();
    if (&rank != ranks_.front().get()) {
      rank.session->change_saved(which, [&](std::span<float> some) {
        std::copy_n(next, some.size(), some.begin());
        next += static_cast<std::ptrdiff_t>(some.size());
      });
    }
  });
}

std::optional<Restored> Team::follow_first(std::optional<Restored> of_first) {
  if (peers_ == nullptr) {
    if (of_first && ranks_.size() > 1) {
      spread(Spread::all);
    }
    return of_first;
  }
  std::optional<Restored> restored = peers_->from_first(of_first);
  spread(Spread::all);
  std::uint64_t hash = 0;
  only(*ranks_.front(), [&](Rank& rank) { hash = rank.session->weights_hash(); });
  peers_->compare(fmt::format("weights of hash {:016x}", hash));
  return restored;
}

void Team::start(std::int64_t global_step) {
  each([&](Rank& rank) { rank.session->start(global_step); });
  start_checks();
  start_samples();
  equalize_recording();
}

void Team::save(std::int64_t global_step) {
  only(*ranks_.front(), [&](Rank& rank) { rank.session->save(global_step); });
}

void Team::snapshot(std::int64_t global_step, VariableSnapshot& into) {
  only(*ranks_.front(), [&](Rank& rank) { rank.session->snapshot(global_step, into); });
}

std::size_t Team::snapshot_bytes() const { return first().snapshot_bytes(); }

StepValues Team::step(std::int64_t global_step, double learning_rate, Timeline* timeline) {
  each([&](Rank& rank) {
    Timeline* const wanted = timeline != nullptr ? &rank.timeline : nullptr;
    if (rank.check) {
      rank.check->begin(global_step + 1);
    }
    if (rank.samples) {
      rank.samples->begin(wants_samples_);
    }
    rank.values = rank.session->main().run(global_step, learning_rate, wanted);
    if (rank.check) {
      rank.check->end();
    }
  });
  if (timeline != nullptr) {
    *timeline = ranks_.front()->timeline;
  }
  const StepValues values = merged();
  compare_hashes(global_step + 1);
  return values;
}

void Team::replan(const std::optional<Costs>& costs) {
  std::string plan;
  if (costs && is_first(*ranks_.front())) {
    only(*ranks_.front(), [&](Rank& rank) {
      if (rank.session->replan(*costs) && job_.ranks > 1) {
        plan = rank.session->plan_text();
      }
    });
  }
  if (peers_ != nullptr) {
    plan = peers_->from_first(plan);
  }
  if (plan.empty()) {
    return;
  }
  each([&](Rank& rank) {
    if (!is_first(rank)) {
      rank.session->follow(plan);
    }
    if (RankExchange* const exchange = exchange_of(rank)) {
      exchange->gradients_move();
    }
  });
}

void Team::agree() {
  if (peers_ != nullptr) {
    peers_->share({});
  }
}

void Team::timing_starts() {
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    rank->session->main().forget_times();
    if (RankExchange* const exchange = exchange_of(*rank)) {
      exchange->forget_times();
    }
  }
}

std::vector<double> Team::exchange_seconds() const {
  std::vector<double> seconds;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    const RankExchange* const exchange = exchange_of(*rank);
    seconds.push_back(exchange == nullptr ? 0 : exchange->seconds());
  }
  return seconds;
}

std::vector<std::vector<ReductionTime>> Team::take_reductions() {
  std::vector<std::vector<ReductionTime>> all;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    RankExchange* const exchange = exchange_of(*rank);
    all.push_back(exchange == nullptr ? std::vector<ReductionTime>() : exchange->take_reductions());
  }
  return all;
}

double Team::clock_ahead() {
  return peers_ == nullptr ? 0 : clocks_ahead(*peers_)[static_cast<std::size_t>(peers_->rank())];
}

std::vector<std::string> Team::gather_processes(const std::string& of_this) {
  return peers_ == nullptr ? std::vector<std::string>{of_this} : peers_->all_gather(of_this);
}

void Team::begin_evaluation() {
  if (job_.trains() && job_.ranks > 1 &&
      job_.config->variable_update != VariableUpdate::independent) {
    spread(Spread::averages);
  }
  each([](Rank& rank) { rank.evaluation = &rank.session->evaluation(); });
}

StepValues Team::evaluation_step(std::int64_t number) {
  each([&](Rank& rank) { rank.values = rank.evaluation->run(number, 0); });
  return merged();
}

}  // namespace cnn::bench
