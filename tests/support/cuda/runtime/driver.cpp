#include "tests/support/cuda/runtime/driver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "runtime/error.h"
#include "tests/support/cuda/runtime/fault.h"
#include "tests/support/cuda/runtime/kernel_table.h"
#include "tests/support/cuda/runtime/violation.h"

namespace cnn::tests::emulated {
namespace {

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Environment variables configure programs that do not know the emulation.
Settings settings_of_environment() {
  Settings settings;
  settings.devices = number_of("CNN_EMULATED_DEVICES", settings.devices);
  settings.delays.seed = static_cast<std::uint32_t>(
      number_of("CNN_EMULATED_SEED", static_cast<int>(settings.delays.seed)));
  settings.bytes_per_device =
      static_cast<std::size_t>(
          number_of("CNN_EMULATED_MB", static_cast<int>(settings.bytes_per_device >> 20U)))
      << 20U;
  if (const char* file = std::getenv("CNN_EMULATED_COUNTS")) {
    settings.counts_file = file;
  }
  if (const char* const fault = std::getenv("CNN_EMULATED_KERNEL_FAULT")) {
    const char* const colon = std::strchr(fault, ':');
    check(colon != nullptr, "CNN_EMULATED_KERNEL_FAULT is DEVICE:KERNEL");
    settings.fault = {.device = std::atoi(fault),
                      .kernel = static_cast<unsigned>(std::atoi(colon + 1))};
  }
  return settings;
}

std::unique_ptr<Driver>& slot() {
  static std::unique_ptr<Driver> only = std::make_unique<Driver>(settings_of_environment());
  return only;
}

template <class Object>
void append_alive(const std::deque<std::unique_ptr<Object>>& objects, const char* name,
                  std::vector<std::string>& lines) {
  const auto count =
      std::ranges::count_if(objects, [](const auto& object) { return !object->destroyed; });
  if (count > 0) {
    lines.push_back(std::to_string(count) + " " + name);
  }
}

}  // namespace

Driver::Driver(const Settings& s)
    : settings(s),
      memory(s.devices, s.bytes_per_device),
      devices(static_cast<std::size_t>(s.devices)) {
  name_faults();
}

Driver::~Driver() {
  for (const auto& stream : streams) {
    stream->queue.reset();  // queued work may still use graphs and events
  }
  if (!settings.counts_file.empty() && settings.devices > 0) {
    std::ofstream(settings.counts_file)
        << "launches " << launches << "\nexecutions " << executions << "\nreplays " << replays
        << "\npeak_bytes " << memory.peak_bytes() << '\n';
  }
}

std::unique_ptr<Queue> Driver::make_queue(int device) {
  DeviceState& state = devices[static_cast<std::size_t>(device)];
  QueueHooks hooks;
  hooks.begun = [this, device, &state] {
    if (state.queued++ == 0) {
      memory.open(device, true);
    }
  };
  hooks.ended = [this, device, &state] {
    if (--state.queued == 0) {
      memory.open(device, false);
    }
  };
  hooks.failed = [this, device](const std::string& work, const std::string& why) {
    break_device(device, cudaErrorLaunchFailure, work + ": " + why);
  };
  hooks.is_broken = [&state] { return state.sticky != cudaSuccess; };
  Delays delays = settings.delays;
  delays.seed += ++queues_;
  return std::make_unique<Queue>(lock, std::move(hooks), delays);
}

void Driver::enqueue(CUstream_st& stream, Work work) {
  if (stream.capture == nullptr) {
    stream.queue->push(std::move(work));
    return;
  }
  // A parameter word that is not the address of a live block is a number or padding.
  std::erase_if(work.uses, [this](const void* at) { return memory.find(at) == nullptr; });
  Capture& capture = *stream.capture;
  const auto lane = std::ranges::find(capture.streams, &stream) - capture.streams.begin();
  capture.nodes.push_back({.work = std::move(work),
                           .after = std::move(stream.tail),
                           .lane = static_cast<std::size_t>(lane)});
  stream.tail = {capture.nodes.size() - 1};
}

void Driver::break_device(int device, cudaError_t error, const std::string& why) {
  DeviceState& state = devices[static_cast<std::size_t>(device)];
  if (state.sticky == cudaSuccess) {
    state.sticky = error;
    state.fault = why;
    if (why.ends_with(injected_kernel_fault)) {
      return;
    }
    violate("device " + std::to_string(device) + " is broken by " + why);
  }
}

void Driver::begin_kernel(int device) {
  const unsigned number = devices[static_cast<std::size_t>(device)].kernels++;
  check(!settings.fault || settings.fault->device != device || settings.fault->kernel != number,
        injected_kernel_fault);
}

bool Driver::is_used(const Block& block) const {
  const auto is_inside = [&](const void* at) { return block.contains(at); };
  return std::ranges::any_of(streams,
                             [&](const auto& stream) {
                               return stream->queue != nullptr && stream->queue->uses(is_inside);
                             }) ||
         std::ranges::any_of(executables, [&](const auto& executable) {
           return std::ranges::any_of(executable->lanes,
                                      [&](const auto& queue) { return queue->uses(is_inside); });
         });
}

Driver& driver() { return *slot(); }

std::vector<std::string> alive() {
  Driver& d = driver();
  const std::scoped_lock lock(d.lock.mutex);
  std::vector<std::string> lines;
  append_alive(d.streams, "streams", lines);
  append_alive(d.events, "events", lines);
  append_alive(d.graphs, "graphs", lines);
  append_alive(d.executables, "executable graphs", lines);
  for (const Block& block : d.memory.blocks()) {
    lines.push_back(d.memory.name_of(block.data));
  }
  return lines;
}

void set_up(const Settings& settings) {
  for (const std::string& line : alive()) {
    violate("still alive when the emulated GPU starts afresh: " + line);
  }
  slot() = std::make_unique<Driver>(settings);
  remove_kernels();
}

std::string capture_problem() {
  const std::scoped_lock lock(driver().lock.mutex);
  return driver().capture_problem;
}

Hold::Hold(cudaStream_t stream) : stream_(stream) {
  const std::scoped_lock lock(driver().lock.mutex);
  stream_->queue->set_held(true);
}

Hold::~Hold() {
  const std::scoped_lock lock(driver().lock.mutex);
  if (stream_->queue != nullptr) {
    stream_->queue->set_held(false);
  }
}

}  // namespace cnn::tests::emulated
