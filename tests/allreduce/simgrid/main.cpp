// Simulates an all-reduce message by message in SimGrid, whose links share their bandwidth among
// concurrent messages.
// simgrid_run HOSTS RANKS_EACH BYTES LIMIT simulates the all-reduce that the cost model chooses.
// The exit status is 1 if it takes longer than LIMIT times the lower bound. Posting and adding cost
// nothing.
// simgrid_run gather HOSTS RANKS_EACH BYTES LIMIT simulates an all-gather of BYTES per rank, as at
// the start of a run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "allreduce/choose.h"
#include "allreduce/repeated_all_gather.h"
#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

namespace sg = simgrid::s4u;

// Matches SimGrid's cluster below, where a message passes two links and the switch.
constexpr Links links{.latency = 2.5e-6, .rank = 20e9, .host = 12.5e9};

void write_platform(const std::string& path, int hosts) {
  std::ofstream(path) << R"(<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="node-" suffix="" radical="0-)"
                      << hosts - 1 << R"(" speed="100Gf" bw="12.5GBps" lat="1us"
  bb_bw="80000GBps" bb_lat="0.5us" loopback_bw="20GBps" loopback_lat="0.3us"/></platform>)";
}

// Runs the action lists of all ranks; each chunk of each rank is an actor.
class Simulated {
 public:
  explicit Simulated(std::vector<RankPlan> plans) : plans_(std::move(plans)) {
    for (const RankPlan& plan : plans_) {
      std::vector<sg::SemaphorePtr>& ends = ended_.emplace_back();
      for (std::size_t chunk = 0; chunk < plan.chunks.size(); ++chunk) {
        ends.push_back(sg::Semaphore::create(0));
      }
    }
  }

  void start(const Topology& topology) {
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      sg::Host* const host = sg::Host::by_name("node-" + std::to_string(topology.host_of[rank]));
      for (std::size_t chunk = 0; chunk < plans_[rank].chunks.size(); ++chunk) {
        sg::Actor::create(std::to_string(rank), host, [this, rank, chunk] { run(rank, chunk); });
      }
    }
  }

 private:
  void run(std::size_t rank, std::size_t chunk) {
    const std::vector<Chunk>& chunks = plans_[rank].chunks;
    for (const std::size_t earlier : chunks[chunk].after) {
      ended_[rank][earlier]->acquire();
    }
    std::vector<sg::CommPtr> open;
    for (const Action& action : chunks[chunk].actions) {
      if (const auto* const send = std::get_if<Send>(&action)) {
        const auto bytes = send->range.size() * size_of(plans_[rank].wire);
        open.push_back(box(rank, send->to, chunk)->put_async(&token_, bytes));
      } else if (const auto* const receive = std::get_if<Receive>(&action)) {
        open.push_back(box(receive->from, rank, chunk)->get_async<char>(&received_));
      } else if (std::holds_alternative<Wait>(action)) {
        complete(open);
      } else {
        check(std::holds_alternative<Sum>(action), "ranks of hosts cannot meet in memory");
      }
    }
    complete(open);
    for (std::size_t later = chunk + 1; later < chunks.size(); ++later) {
      for (auto times = std::ranges::count(chunks[later].after, chunk); times > 0; --times) {
        ended_[rank][chunk]->release();
      }
    }
  }
  static void complete(std::vector<sg::CommPtr>& open) {
    for (const sg::CommPtr& message : open) {
      message->wait();
    }
    open.clear();
  }
  template <class From, class To>
  static sg::Mailbox* box(From from, To to, std::size_t chunk) {
    return sg::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to) + "." +
                                std::to_string(chunk));
  }

  std::vector<RankPlan> plans_;
  std::vector<std::vector<sg::SemaphorePtr>> ended_;  // semaphores by rank and chunk
  char token_ = 0;
  char* received_ = nullptr;
};

// Runs the rounds of an all-gather one after another.
void gather(int rank, int ranks, double bytes) {
  char token = 0;
  char* received = nullptr;
  const auto box = [](int from, int to) {
    return sg::Mailbox::by_name("gather " + std::to_string(from) + ">" + std::to_string(to));
  };
  for (const GatherRound& round : gather_rounds(rank, ranks)) {
    const double size = bytes * round.count;
    const sg::CommPtr sent =
        box(rank, round.to)->put_async(&token, static_cast<std::uint64_t>(size));
    const sg::CommPtr arrived = box(round.from, rank)->get_async<char>(&received);
    arrived->wait();
    sent->wait();
  }
}

int simulate_gather(sg::Engine& engine, const std::vector<std::string>& words) {
  const Topology topology = ranks_on_hosts(std::stoi(words.at(2)), std::stoi(words.at(3)));
  const double bytes = std::stod(words.at(4)), limit = std::stod(words.at(5));
  const int ranks = topology.ranks();
  write_platform(words.at(6), std::stoi(words.at(2)));
  engine.load_platform(words.at(6));
  for (int rank = 0; rank < ranks; ++rank) {
    const int host = topology.host_of[static_cast<std::size_t>(rank)];
    sg::Actor::create(std::to_string(rank), sg::Host::by_name("node-" + std::to_string(host)),
                      [rank, ranks, bytes] { gather(rank, ranks, bytes); });
  }
  engine.run();
  const auto rounds = static_cast<double>(gather_rounds(0, ranks).size());
  const double each = std::stod(words.at(3)), outside = (ranks - each) * each * bytes;
  const double least = rounds * links.latency + outside / links.host;
  const double seconds = sg::Engine::get_clock();
  std::cout << ranks << " ranks, all-gather of " << bytes << " bytes each: " << rounds
            << " messages of a rank, " << 1e6 * seconds << " us, bound " << 1e6 * least << ": "
            << seconds / least << " of it, limit " << limit << '\n';
  return seconds <= limit * least ? EXIT_SUCCESS : EXIT_FAILURE;
}

int simulate_choice(sg::Engine& engine, const std::vector<std::string>& words) {
  const Topology topology = ranks_on_hosts(std::stoi(words.at(1)), std::stoi(words.at(2)));
  const double bytes = std::stod(words.at(3)), limit = std::stod(words.at(4));
  const std::size_t elements = static_cast<std::size_t>(bytes) / sizeof(float);
  const Candidate candidate = candidates(topology, {.elements = elements}, links).front();
  write_platform(words.at(5), std::stoi(words.at(1)));
  engine.load_platform(words.at(5));
  Simulated ranks(plans_of_all(*candidate.algorithm, topology, elements, candidate.options));
  ranks.start(topology);
  engine.run();
  const double least = bound(topology, bytes, links), seconds = sg::Engine::get_clock();
  std::cout << topology.ranks() << " ranks, " << bytes << " bytes: " << candidate.algorithm->name
            << " " << dims_text(candidate.options) << " in " << candidate.options.chunks
            << " chunks, " << candidate.options.window << " at once: " << 1e3 * seconds
            << " ms, our model " << 1e3 * candidate.seconds << ", bound " << 1e3 * least << ": "
            << seconds / least << " of it, limit " << limit << '\n';
  return seconds <= limit * least ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace cnn::allreduce

int main(int argc, char** argv) {
  simgrid::s4u::Engine engine(&argc, argv);
  const std::vector<std::string> words(argv, argv + argc);
  return words.at(1) == "gather" ? cnn::allreduce::simulate_gather(engine, words)
                                 : cnn::allreduce::simulate_choice(engine, words);
}
