#include "allreduce/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <type_traits>
#include <unistd.h>
#include <utility>

#include "allreduce/all_gather.h"
#include "allreduce/multiplexed_transport.h"
#include "allreduce/rank_order.h"

namespace cnn::allreduce {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string link_of(const char* path) {
  std::error_code ignored;
  return std::filesystem::read_symlink(path, ignored).string();
}

RankPlacement own_placement() {
  RankPlacement placement{.host = host_name(), .process = ::getpid()};
  std::ifstream("/proc/sys/kernel/random/boot_id") >> placement.kernel;
  // A process with a host name and a network of its own counts as a host: tests of several hosts
  // need that.
  placement.memory = placement.kernel + ":" + link_of("/proc/self/ns/pid") + ":" +
                     link_of("/proc/self/ns/net") + ":" + link_of("/proc/self/ns/uts") + ":" +
                     std::to_string(::geteuid());
  return placement;
}

// Returns the processes that share memory with this one, itself included, ascending.
std::vector<int> local_peers_of(std::span<const RankPlacement> placements, int rank) {
  std::vector<int> local_peers;
  for (std::size_t other = 0; other < placements.size(); ++other) {
    if (placements[other].memory == placements[static_cast<std::size_t>(rank)].memory) {
      local_peers.push_back(static_cast<int>(other));
    }
  }
  return local_peers;
}

SharedMemory open_memory_of(const RankPlacement& first, int descriptor) {
  const std::string path =
      "/proc/" + std::to_string(first.process) + "/fd/" + std::to_string(descriptor);
  const int mine = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  check(mine >= 0, "the memory that ranks on " + first.host + " share cannot be opened: " + path +
                       ": " + std::strerror(errno) + "; --comm_transport=mpi does without");
  return SharedMemory::open(mine);
}

// Routes calls by the rank that they concern: to shared memory for local ranks, to messages for
// remote ones.
class HybridTransport final : public Transport {
 public:
  HybridTransport(World& world, std::unique_ptr<Transport> local, std::unique_ptr<Transport> remote,
                  std::span<const int> local_peers)
      : world_(world),
        local_(std::move(local)),
        remote_(std::move(remote)),
        local_rank_(static_cast<std::size_t>(remote_->ranks()), -1) {
    for (std::size_t local_rank = 0; local_rank < local_peers.size(); ++local_rank) {
      local_rank_[static_cast<std::size_t>(local_peers[local_rank])] = static_cast<int>(local_rank);
    }
    remote_->publish(*local_->progress());
    local_group_.reserve(local_rank_.size());
    remote_group_.reserve(local_rank_.size());
  }

  int rank() const override { return remote_->rank(); }
  int ranks() const override { return remote_->ranks(); }
  std::size_t channels() const override { return remote_->channels(); }
  Bytes allocate_shared(std::size_t bytes) override { return local_->allocate_shared(bytes); }
  std::byte* peer_address(int rank, std::byte* own) override {
    const int local_rank = local_rank_of(rank);
    return local_rank < 0 ? nullptr : local_->peer_address(local_rank, own);
  }

  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override {
    const Route route = route_to(to);
    reporting_loss([&] { route.transport->send(route.rank, channel, pieces); });
  }
  bool sent(int to, std::size_t channel) override {
    const Route route = route_to(to);
    return reporting_loss([&] { return route.transport->sent(route.rank, channel); });
  }
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override {
    const Route route = route_to(from);
    reporting_loss([&] { route.transport->receive(route.rank, channel, at_sender, to); });
  }
  bool received(int from, std::size_t channel) override {
    const Route route = route_to(from);
    return reporting_loss([&] { return route.transport->received(route.rank, channel); });
  }
  void arrive(std::span<const int> group, std::size_t channel) override {
    local_group_.clear();
    remote_group_.clear();
    for (const int other : group) {
      const int local_rank = local_rank_of(other);
      (local_rank < 0 ? remote_group_ : local_group_)
          .push_back(local_rank < 0 ? other : local_rank);
    }
    local_->arrive(local_group_, channel);
    reporting_loss([&] { remote_->arrive(remote_group_, channel); });
  }
  bool arrived(std::span<const int> group, std::size_t channel) override {
    return std::ranges::all_of(group, [&](int other) {
      const Route route = route_to(other);
      return reporting_loss([&] { return route.transport->arrived({&route.rank, 1}, channel); });
    });
  }

  // Waits on both transports. Messages come first, because their heartbeats tell which rank of all
  // hosts is to blame for a wait that times out.
  void idle(int waits_for) override {
    const int local_rank = local_rank_of(waits_for);
    reporting_loss([&] {
      remote_->idle(waits_for);
      local_->idle(local_rank < 0 ? local_->rank() : local_rank);
    });
  }
  void busy() override {
    local_->busy();
    remote_->busy();
  }
  void leave(std::optional<int> lost) override { local_->leave(lost); }
  Progress* progress() override { return local_->progress(); }
  std::uint64_t progress_of(int rank) override {
    const Route route = route_to(rank);
    return route.transport->progress_of(route.rank);
  }

 private:
  struct Route {
    Transport* transport;
    int rank;
  };
  // Runs the call; if it throws PeerLost, reports the loss on both transports.
  template <class Call>
  std::invoke_result_t<const Call&> reporting_loss(const Call& call) {
    try {
      return call();
    } catch (const PeerLost& lost) {
      world_.abort(lost.rank(), lost.what());
      local_->leave(lost.rank());
      throw;
    }
  }
  int local_rank_of(int rank) const {
    return rank == any_rank ? -1 : local_rank_[static_cast<std::size_t>(rank)];
  }
  Route route_to(int rank) const {
    const int local_rank = local_rank_of(rank);
    return local_rank < 0 ? Route{remote_.get(), rank} : Route{local_.get(), local_rank};
  }

  World& world_;
  std::unique_ptr<Transport> local_, remote_;
  std::vector<int> local_rank_;                  // by rank: its local rank; -1: it is remote
  std::vector<int> local_group_, remote_group_;  // reserved, as arrive() allocates nothing
};

}  // namespace

std::vector<RankPlacement> gather_placements(World& world, bool apart) {
  RankPlacement mine = own_placement();
  if (apart) {
    mine.memory = std::to_string(world.rank());
  }
  return all_gather(world, mine);
}

Topology topology_of(std::span<const RankPlacement> placements, int each) {
  Topology topology;
  std::vector<std::string> hosts;
  std::vector<int> nodes;
  for (const RankPlacement& placement : placements) {
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(each); ++rank) {
      nodes.push_back(rank < placement.nodes.size() ? placement.nodes[rank] : -1);
    }
    const auto host = std::ranges::find(hosts, placement.memory);
    topology.host_of.insert(topology.host_of.end(), static_cast<std::size_t>(each),
                            static_cast<int>(host - hosts.begin()));
    if (host == hosts.end()) {
      hosts.push_back(placement.memory);
    }
  }
  set_numa_nodes(topology, std::move(nodes));
  return topology;
}

Connection::Connection(World& world, std::span<const RankPlacement> placements,
                       const SharedMemoryOptions& options, int each)
    : world_(world), local_peers_(local_peers_of(placements, world.rank())), each_(each) {
  const std::size_t sharers = local_peers_.size() * static_cast<std::size_t>(each);
  const bool shares = sharers > 1, first = local_peers_.front() == world.rank();
  if (shares && first) {
    memory_ =
        std::make_unique<SharedMemory>(SharedMemory::create(static_cast<int>(sharers), options));
  }
  const std::vector<int> descriptors = all_gather(world, memory_ ? memory_->descriptor() : -1);
  if (shares && !first) {
    const auto host = static_cast<std::size_t>(local_peers_.front());
    memory_ = std::make_unique<SharedMemory>(open_memory_of(placements[host], descriptors[host]));
  }
  if (!shares || local_peers_.size() < placements.size()) {
    const auto pairs = static_cast<std::size_t>(each) * static_cast<std::size_t>(each);
    messages_ = world.connect(options.channels * pairs);
  }
  barrier(world);  // All processes have the memory: joining is a matter of moments.
  if (each == 1) {
    transport_ = join(0);
  }
}

std::unique_ptr<Transport> Connection::join(int local_rank) {
  std::unique_ptr<Transport> local, remote;
  if (memory_) {
    std::vector<int> called;
    for (const int process : local_peers_) {
      called.insert(called.end(), static_cast<std::size_t>(each_), process);
    }
    const auto position = std::ranges::find(local_peers_, world_.rank()) - local_peers_.begin();
    local = memory_->join(static_cast<int>(position) * each_ + local_rank, called);
  }
  if (messages_) {
    remote = each_ == 1
                 ? std::move(messages_)
                 : std::make_unique<MultiplexedTransport>(*messages_, mutex_, local_rank, each_);
  }
  if (local == nullptr || remote == nullptr) {
    return local ? std::move(local) : std::move(remote);
  }
  std::vector<int> ranks;
  for (const int process : local_peers_) {
    for (int thread = 0; thread < each_; ++thread) {
      ranks.push_back(process * each_ + thread);
    }
  }
  return std::make_unique<HybridTransport>(world_, std::move(local), std::move(remote), ranks);
}

}  // namespace cnn::allreduce
