#include "bench/ranks/device_exchange.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "allreduce/nccl/communicator.h"
#include "allreduce/repeated_all_gather.h"
#include "allreduce/staged.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

namespace nccl = allreduce::nccl;

// The message from rank 0 to all ranks.
struct NcclHandshake {
  int version = 0;       // of NCCL; 0: the exchange goes through host memory
  bool refused = false;  // rank 0 cannot open the NCCL that the flags insist on
  nccl::UniqueId id;
};
static_assert(std::is_trivially_copyable_v<NcclHandshake>);

struct HandshakeResult {
  std::optional<nccl::Library> library;
  NcclHandshake handshake;
  std::string why_not;  // reason against NCCL
};

HandshakeResult open_first(const CommFlags& flags, bool wanted, OpenNccl open) {
  HandshakeResult first;
  if (!wanted) {
    first.why_not = "the flags ask for an algorithm or an order of sums";
    return first;
  }
  try {
    first.library = open();
    first.handshake = {.version = first.library->version, .id = nccl::make_id(*first.library)};
  } catch (const Error& error) {
    first.handshake.refused = flags.backend == CommBackend::nccl;
    first.library.reset();
    first.why_not = error.what();
  }
  return first;
}

// Returns why a rank other than 0 fails together with rank 0: usually it has no NCCL either.
std::string why_refused(OpenNccl open) {
  try {
    open();
  } catch (const Error& error) {
    return error.what();
  }
  return "--comm_backend=nccl: rank 0 cannot open NCCL";
}

// Broadcasts rank 0's choice, which all ranks follow. Every rank reads the flags itself, so that
// all ranks refuse the same flags and none considers rank 0 lost.
HandshakeResult invite(const CommFlags& flags, allreduce::Transport& transport, OpenNccl open) {
  const bool wanted = wants_nccl(flags);
  allreduce::Broadcast broadcast(transport);
  HandshakeResult result;
  if (transport.rank() == 0) {
    result = open_first(flags, wanted, open);
  }
  broadcast.run(std::as_writable_bytes(std::span(&result.handshake, 1)));
  if (result.handshake.refused) {
    throw Error(transport.rank() == 0 ? result.why_not : why_refused(open));
  }
  const int version = result.handshake.version;
  if (version == 0 || transport.rank() == 0) {
    return result;
  }
  result.library = open();
  check(result.library->version == version,
        fmt::format("rank 0 has NCCL {}, rank {} has {}: install the same on all hosts",
                    nccl::version_text(version), transport.rank(),
                    nccl::version_text(result.library->version)));
  return result;
}

// NCCL does not report which rank it waits for.
void check_peers(allreduce::Transport& transport, bool waiting) {
  if (waiting) {
    transport.idle(allreduce::any_rank);
  } else {
    transport.busy();
  }
}

// Sets the device's poll callback until the last copy of the context is destroyed: it refers to the
// transport, which the device may outlive.
void poll_with(RankContext& context, std::function<void(bool waiting)> poll) {
  Device* const own = context.backend.device.get();
  const auto on_poll = context.backend.device_exchange->on_poll;
  on_poll(*own, std::move(poll));
  context.device_poll = {own, [own, on_poll](void* /*device*/) { on_poll(*own, {}); }};
}

// NCCL allocates device buffers when it starts, and more at the first sum of a size by an
// algorithm. Allocates all of them now, before anything is planned with the free memory.
void take_memory(Device& device, nccl::Communicator& communicator) {
  constexpr std::size_t largest = std::size_t{16} << 20U;
  const auto memory = std::make_shared<Buffer>(device.allocate(largest));
  communicator.share(memory);
  const auto stream = device.make_stream(Lane::communicate);
  for (const std::size_t bytes : {std::size_t{4} << 10U, std::size_t{1} << 20U, largest}) {
    const std::span<float> piece(reinterpret_cast<float*>(memory->data()), bytes / sizeof(float));
    communicator.all_reduce(*stream, 0, {&piece, 1}, 1);
    stream->synchronize();
  }
}

std::shared_ptr<StreamCommunicator> exchange_by_nccl(RankContext& context,
                                                     const HandshakeResult& result,
                                                     allreduce::Transport& transport) {
  Device& own = *context.backend.device;
  const DeviceExchange& device = *context.backend.device_exchange;
  const std::size_t free_before = own.memory_bytes();
  const auto communicator = std::make_shared<nccl::Communicator>(
      *result.library,
      nccl::Team{.rank = transport.rank(),
                 .ranks = transport.ranks(),
                 .id = result.handshake.id,
                 .check_peers = [&](bool waiting) { check_peers(transport, waiting); },
                 .native = device.native});
  poll_with(context, [communicator](bool waiting) { communicator->poll(waiting); });
  device.add(context.kernels, communicator);
  context.collective_exchange = transport.ranks() > 1;
  take_memory(own, *communicator);
  const std::size_t free_now = own.memory_bytes();
  const std::size_t taken =
      std::min(free_before - std::min(free_now, free_before), context.memory.device);
  context.memory.device -= taken;
  context.memory.text += fmt::format(" and {} MiB for NCCL", taken >> 20U);
  context.shared_memory = [&own, communicator](std::size_t bytes) {
    auto memory = std::make_shared<Buffer>(own.allocate(bytes));
    return Buffer(memory->data(), memory->bytes(),
                  [memory, communicator,
                   attached = communicator->attach(memory)](std::byte* /*released*/) mutable {
                    attached.reset();
                    memory.reset();
                  });
  };
  return communicator;
}

std::shared_ptr<StreamCommunicator> exchange_by_host(RankContext& context,
                                                     allreduce::Transport& transport,
                                                     Communicator& host) {
  Device& own = *context.backend.device;
  const DeviceExchange& device = *context.backend.device_exchange;
  const auto pinned = std::make_shared<std::vector<std::shared_ptr<void>>>();
  const auto communicator = std::make_shared<allreduce::StagedCommunicator>(
      host, allreduce::StagingFunctions{
                .allocate_staging =
                    [&transport, &device, pinned](std::size_t elements) {
                      const allreduce::Bytes memory =
                          transport.allocate_shared(elements * sizeof(float));
                      pinned->push_back(device.pin(memory));
                      return std::span(reinterpret_cast<float*>(memory.data()), elements);
                    },
                .allocate_flag =
                    [&own] {
                      constexpr std::size_t bytes = 64;
                      Buffer flag = own.allocate_host(bytes);
                      std::fill_n(flag.data(), bytes, std::byte{});
                      return flag;
                    },
                .wait_for = device.wait_for_flag});
  poll_with(context, [communicator](bool waiting) { communicator->poll(waiting); });
  device.add(context.kernels, communicator);
  return communicator;
}

}  // namespace

bool wants_nccl(const CommFlags& flags) {
  const bool by_nccl = !flags.spec || flags.spec->starts_with("nccl");
  switch (flags.backend) {
    case CommBackend::automatic:
      return by_nccl && flags.order == allreduce::Order::fast;
    case CommBackend::nccl:
      check(flags.order == allreduce::Order::fast,
            "--comm_order: NCCL adds in an order of its own; use --comm_order=fast, or "
            "--comm_backend=ring");
      check(by_nccl,
            "--all_reduce_spec names algorithms that NCCL does not have; leave it out, or "
            "use --comm_backend=ring");
      return true;
    case CommBackend::mpi:
      throw Error(
          "--comm_backend=mpi sums what processors have computed; for GPUs use nccl or ring");
    case CommBackend::own:
      break;
  }
  return false;
}

ChosenExchange exchange_on_device(RankContext context, const CommFlags& flags,
                                  allreduce::Transport& transport, Communicator& host,
                                  OpenNccl open) {
  const HandshakeResult result = invite(flags, transport, open);
  if (result.library) {
    const auto communicator = exchange_by_nccl(context, result, transport);
    return {.context = std::move(context),
            .text = fmt::format("comm: NCCL {} sums on the devices: flags that choose an algorithm "
                                "or a wire do not act",
                                nccl::version_text(result.library->version)),
            .communicator = communicator};
  }
  const auto communicator = exchange_by_host(context, transport, host);
  return {.context = std::move(context),
          .text = fmt::format("comm: gradients travel to the host and are summed there{}{}",
                              result.why_not.empty() ? "" : ", since ", result.why_not),
          .by_host = true,
          .communicator = communicator};
}

}  // namespace cnn::bench
