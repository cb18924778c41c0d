#include "allreduce/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <type_traits>
#include <unistd.h>
#include <utility>

#include "allreduce/placement.h"
#include "allreduce/tower_messages.h"

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

Seat own_seat() {
  Seat seat{.host = host_name(), .process = ::getpid()};
  std::ifstream("/proc/sys/kernel/random/boot_id") >> seat.kernel;
  // A name and a network of its own make a host of its own, as tests of several hosts want.
  seat.memory = seat.kernel + ":" + link_of("/proc/self/ns/pid") + ":" +
                link_of("/proc/self/ns/net") + ":" + link_of("/proc/self/ns/uts") + ":" +
                std::to_string(::geteuid());
  return seat;
}

// Those that share memory with this rank, itself included, ascending.
std::vector<int> mates_of(std::span<const Seat> seats, int rank) {
  std::vector<int> mates;
  for (std::size_t other = 0; other < seats.size(); ++other) {
    if (seats[other].memory == seats[static_cast<std::size_t>(rank)].memory) {
      mates.push_back(static_cast<int>(other));
    }
  }
  return mates;
}

PeerMemory open_memory_of(const Seat& first, int descriptor) {
  const std::string path =
      "/proc/" + std::to_string(first.process) + "/fd/" + std::to_string(descriptor);
  const int mine = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  check(mine >= 0, "the memory that ranks on " + first.host + " share cannot be opened: " + path +
                       ": " + std::strerror(errno) + "; --comm_transport=mpi does without");
  return PeerMemory::open(mine);
}

// Memory for some of the ranks, messages for the others.
class MixedTransport final : public Transport {
 public:
  MixedTransport(World& world, std::unique_ptr<Transport> inside,
                 std::unique_ptr<Transport> outside, std::span<const int> mates)
      : world_(world),
        inside_(std::move(inside)),
        outside_(std::move(outside)),
        place_(static_cast<std::size_t>(outside_->ranks()), -1) {
    for (std::size_t place = 0; place < mates.size(); ++place) {
      place_[static_cast<std::size_t>(mates[place])] = static_cast<int>(place);
    }
    outside_->tell(*inside_->progress());
    inside_group_.reserve(place_.size());
    outside_group_.reserve(place_.size());
  }

  int rank() const override { return outside_->rank(); }
  int ranks() const override { return outside_->ranks(); }
  std::size_t channels() const override { return outside_->channels(); }
  Bytes room(std::size_t bytes) override { return inside_->room(bytes); }
  std::byte* in_sight(int rank, std::byte* own) override {
    const int place = place_of(rank);
    return place < 0 ? nullptr : inside_->in_sight(place, own);
  }

  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override {
    const Way way = way_to(to);
    told([&] { way.transport->send(way.rank, channel, pieces); });
  }
  bool sent(int to, std::size_t channel) override {
    const Way way = way_to(to);
    return told([&] { return way.transport->sent(way.rank, channel); });
  }
  void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
               std::span<const Bytes> to) override {
    const Way way = way_to(from);
    told([&] { way.transport->receive(way.rank, channel, at_sender, to); });
  }
  bool received(int from, std::size_t channel) override {
    const Way way = way_to(from);
    return told([&] { return way.transport->received(way.rank, channel); });
  }
  void come(std::span<const int> group, std::size_t channel) override {
    inside_group_.clear();
    outside_group_.clear();
    for (const int other : group) {
      const int place = place_of(other);
      (place < 0 ? outside_group_ : inside_group_).push_back(place < 0 ? other : place);
    }
    inside_->come(inside_group_, channel);
    told([&] { outside_->come(outside_group_, channel); });
  }
  bool have_come(std::span<const int> group, std::size_t channel) override {
    return std::ranges::all_of(group, [&](int other) {
      const Way way = way_to(other);
      return told([&] { return way.transport->have_come({&way.rank, 1}, channel); });
    });
  }

  // Looks at both kinds of peers. That of messages comes first: where a wait takes too long, signs
  // of life from all hosts tell who is to blame in the end.
  void idle(int waits_for) override {
    const int place = place_of(waits_for);
    told([&] {
      outside_->idle(waits_for);
      inside_->idle(place < 0 ? inside_->rank() : place);
    });
  }
  void busy() override {
    inside_->busy();
    outside_->busy();
  }
  void leave(std::optional<int> lost) override { inside_->leave(lost); }
  Progress* progress() override { return inside_->progress(); }
  std::uint64_t progress_of(int rank) override {
    const Way way = way_to(rank);
    return way.transport->progress_of(way.rank);
  }

 private:
  struct Way {
    Transport* transport;
    int rank;
  };
  // A rank that is lost on one way is so on the other.
  template <class Call>
  std::invoke_result_t<const Call&> told(const Call& call) {
    try {
      return call();
    } catch (const PeerLost& lost) {
      world_.give_up(lost.rank(), lost.what());
      inside_->leave(lost.rank());
      throw;
    }
  }
  int place_of(int rank) const {
    return rank == any_rank ? -1 : place_[static_cast<std::size_t>(rank)];
  }
  Way way_to(int rank) const {
    const int place = place_of(rank);
    return place < 0 ? Way{outside_.get(), rank} : Way{inside_.get(), place};
  }

  World& world_;
  std::unique_ptr<Transport> inside_, outside_;
  std::vector<int> place_;                         // by rank: inside; -1: it is outside
  std::vector<int> inside_group_, outside_group_;  // of come(), which allocates nothing
};

}  // namespace

std::vector<Seat> find_seats(World& world, bool apart) {
  Seat mine = own_seat();
  if (apart) {
    mine.memory = std::to_string(world.rank());
  }
  std::ostringstream text;
  text << mine.process << '\n' << mine.host << '\n' << mine.kernel << '\n' << mine.memory << '\n';
  std::vector<Seat> seats;
  for (const std::string& of_rank : world.gather(text.str())) {
    std::istringstream lines(of_rank);
    std::string process;
    Seat& seat = seats.emplace_back();
    std::getline(lines, process);
    std::getline(lines, seat.host);
    std::getline(lines, seat.kernel);
    std::getline(lines, seat.memory);
    seat.process = std::stoi(process);
  }
  return seats;
}

Topology topology_of(std::span<const Seat> seats, int each) {
  Topology topology;
  std::vector<std::string> hosts;
  std::vector<int> nodes;
  for (const Seat& seat : seats) {
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(each); ++rank) {
      nodes.push_back(rank < seat.nodes.size() ? seat.nodes[rank] : -1);
    }
    const auto place = std::ranges::find(hosts, seat.memory);
    topology.host_of.insert(topology.host_of.end(), static_cast<std::size_t>(each),
                            static_cast<int>(place - hosts.begin()));
    if (place == hosts.end()) {
      hosts.push_back(seat.memory);
    }
  }
  set_numa_nodes(topology, std::move(nodes));
  return topology;
}

Connection::Connection(World& world, std::span<const Seat> seats, const PeerMemoryOptions& options,
                       int each)
    : world_(world), mates_(mates_of(seats, world.rank())), each_(each) {
  const std::size_t sharers = mates_.size() * static_cast<std::size_t>(each);
  const bool shares = sharers > 1, first = mates_.front() == world.rank();
  if (shares && first) {
    memory_ = std::make_unique<PeerMemory>(PeerMemory::create(static_cast<int>(sharers), options));
  }
  const std::vector<std::string> descriptors =
      world.gather(memory_ ? std::to_string(memory_->descriptor()) : std::string());
  if (shares && !first) {
    const auto host = static_cast<std::size_t>(mates_.front());
    memory_ =
        std::make_unique<PeerMemory>(open_memory_of(seats[host], std::stoi(descriptors[host])));
  }
  if (!shares || mates_.size() < seats.size()) {
    const auto pairs = static_cast<std::size_t>(each) * static_cast<std::size_t>(each);
    messages_ = world.connect(options.channels * pairs);
  }
  world.gather({});  // all have it: joining is a matter of moments
  if (each == 1) {
    transport_ = join(0);
  }
}

std::unique_ptr<Transport> Connection::join(int place) {
  std::unique_ptr<Transport> inside, outside;
  if (memory_) {
    std::vector<int> called;
    for (const int process : mates_) {
      called.insert(called.end(), static_cast<std::size_t>(each_), process);
    }
    const auto mate = std::ranges::find(mates_, world_.rank()) - mates_.begin();
    inside = memory_->join(static_cast<int>(mate) * each_ + place, called);
  }
  if (messages_) {
    outside = each_ == 1 ? std::move(messages_)
                         : std::make_unique<TowerMessages>(*messages_, turn_, place, each_);
  }
  if (inside == nullptr || outside == nullptr) {
    return inside ? std::move(inside) : std::move(outside);
  }
  std::vector<int> ranks;
  for (const int process : mates_) {
    for (int thread = 0; thread < each_; ++thread) {
      ranks.push_back(process * each_ + thread);
    }
  }
  return std::make_unique<MixedTransport>(world_, std::move(inside), std::move(outside), ranks);
}

}  // namespace cnn::allreduce
