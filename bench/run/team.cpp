#include "bench/run/team.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

#include "allreduce/communicator.h"
#include "allreduce/peer_memory.h"
#include "allreduce/simd/table.h"
#include "allreduce/transport.h"
#include "bench/machine/backend.h"
#include "bench/run/job.h"
#include "bench/run/rank_thread.h"
#include "bench/run/session.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

const allreduce::simd::Loops& loops_for(std::string_view instruction_sets) {
  const auto has = [&](std::string_view set) {
    return instruction_sets.find(set) != std::string_view::npos;
  };
  return has("avx512") ? allreduce::simd::avx512_loops()
         : has("avx2") ? allreduce::simd::avx2_loops()
                       : allreduce::simd::plain_loops();
}

// Rethrows the first error of a rank that failed by itself, else the first of all.
void rethrow(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr first;
  for (const std::exception_ptr& error : errors) {
    if (error == nullptr) {
      continue;
    }
    try {
      std::rethrow_exception(error);
    } catch (const allreduce::PeerLost&) {
      first = first == nullptr ? error : first;
    }
  }
  if (first != nullptr) {
    std::rethrow_exception(first);
  }
}

}  // namespace

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

std::string exchange_text(const Config& config) {
  const std::string_view what =
      config.variable_update == VariableUpdate::independent ? "nothing is exchanged"
      : config.variable_update == VariableUpdate::replicated
          ? "gradients and weight decay are summed, as the original's replicated does"
          : "gradients are averaged";
  return fmt::format("{} ranks on threads of this process: {}", config.num_gpus, what);
}

// One session with what it computes by. Of several each has a thread, on which all is done.
struct Team::Rank {
  std::optional<Backend> part;  // of the backend, with several ranks
  std::unique_ptr<allreduce::Transport> transport;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Session> session;
  StepRunner* evaluation = nullptr;  // since begin_evaluation()
  StepValues values;                 // in the step that runs
  std::unique_ptr<RankThread> thread;
};

Team::Team(const Job& job, const Backend& backend) : job_(job), backend_(backend) {
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
    memory_ = std::make_unique<allreduce::PeerMemory>(
        allreduce::PeerMemory::of_threads(count, {.room = backend.memory_limit}));
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

void Team::build(Rank& rank, int number) {
  rank.part = backend_.for_rank(*job_.config, number, job_.config->num_gpus);
  if (memory_) {
    connect(rank, number);
  }
  rank.session = std::make_unique<Session>(job_, *rank.part);
}

void Team::connect(Rank& rank, int number) {
  rank.transport = memory_->join(number);
  // Messages within a process are copies; sums over the memory of all have none.
  constexpr allreduce::Links memory_speed{.latency = 5e-7, .rank = 4e9, .memory = 20e9};
  const allreduce::Settings settings{
      .topology = allreduce::ranks_on_hosts(1, job_.config->num_gpus), .links = memory_speed};
  rank.communicator = std::make_unique<allreduce::BucketCommunicator>(
      *rank.transport, loops_for(rank.part->instruction_sets), settings);
  backend_.add_exchange(rank.part->kernels, *rank.communicator);
  rank.part->shared_memory = [transport = rank.transport.get()](std::size_t bytes) {
    const allreduce::Bytes room = transport->room(bytes);
    return Buffer(room.data(), room.size(), [](std::byte*) {});  // goes with the team
  };
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
          of.transport->leave();
        }
        throw;
      }
    });
  }
  std::vector<std::exception_ptr> errors;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    errors.push_back(rank->thread->wait());
  }
  rethrow(errors);
}

void Team::only(Rank& rank, const std::function<void(Rank&)>& work) {
  if (rank.thread == nullptr) {
    work(rank);
    return;
  }
  rank.thread->start([&] { work(rank); });
  rethrow({rank.thread->wait()});
}

StepValues Team::merged() const {
  std::vector<StepValues> values;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    values.push_back(rank->values);
  }
  StepValues all = merge(values);
  if (job_.config->variable_update == VariableUpdate::independent) {
    all.l2 *= static_cast<double>(ranks_.size());  // one rank alone has it
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

void Team::start(std::int64_t global_step) {
  each([&](Rank& rank) { rank.session->start(global_step); });
}

void Team::save(std::int64_t global_step) {
  only(*ranks_.front(), [&](Rank& rank) { rank.session->save(global_step); });
}

StepValues Team::step(std::int64_t global_step, double learning_rate, Timeline* timeline) {
  each([&](Rank& rank) {
    Timeline* const wanted = &rank == ranks_.front().get() ? timeline : nullptr;
    rank.values = rank.session->main().run(global_step, learning_rate, wanted);
  });
  return merged();
}

void Team::begin_evaluation() {
  each([](Rank& rank) { rank.evaluation = &rank.session->evaluation(); });
}

StepValues Team::evaluation_step(std::int64_t number) {
  each([&](Rank& rank) { rank.values = rank.evaluation->run(number, 0); });
  return merged();
}

}  // namespace cnn::bench
