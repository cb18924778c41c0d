#include "tests/bench/session/device_run.h"

#include <array>
#include <optional>
#include <utility>

#include "bench/flags/flags.h"
#include "bench/machine/cpu_backend.h"
#include "bench/ranks/rank_context.h"
#include "bench/session/session.h"

namespace cnn::tests {
namespace {

// A CPU device that records the bytes of each allocation.
class NotingDevice final : public Device {
 public:
  NotingDevice(CpuOptions options, std::vector<std::size_t>& device, std::vector<std::size_t>& host)
      : inner_(std::move(options)), device_(device), host_(host) {}
  std::string name() const override { return inner_.name(); }
  std::size_t memory_bytes() const override { return inner_.memory_bytes(); }
  std::unique_ptr<Stream> make_stream(Lane lane) override { return inner_.make_stream(lane); }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  Buffer allocate(std::size_t bytes) override {
    device_.push_back(bytes);
    return inner_.allocate(bytes);
  }
  Buffer allocate_host(std::size_t bytes) override {
    host_.push_back(bytes);
    return inner_.allocate_host(bytes);
  }

 private:
  CpuDevice inner_;
  std::vector<std::size_t>& device_;
  std::vector<std::size_t>& host_;
};

}  // namespace

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct DeviceRun::Parts {
  bench::Config config;
  std::vector<std::size_t> of_device, of_host;
  bench::Backend backend;
  std::optional<bench::RankContext> context;
  bench::Job job;
  std::optional<bench::Session> session;
};

DeviceRun::DeviceRun(const Words& flags, std::size_t bytes, const CopyJitter& jitter)
    : parts_(std::make_unique<Parts>()) {
  auto& [config, of_device, of_host, backend, context, job, session] = *parts_;
  const Words words = with({"--device=cpu", "--num_warmup_batches=0", "--num_batches=9"}, flags);
  config = bench::parse_flags(words, {}).config;
  backend = bench::make_backend(config, std::array{bench::cpu_backend()});
  backend.memory = {.device = bytes, .host = backend.memory.device, .text = "a device of the test"};
  CpuOptions options{.memory_limit = bytes, .copy_jitter = jitter, .compute_on_caller = true};
  backend.device = std::make_unique<NotingDevice>(std::move(options), of_device, of_host);
  context.emplace(bench::only_rank(backend));
  job = bench::make_job(config, *context);
  session.emplace(job, *context);
}

DeviceRun::~DeviceRun() = default;

bench::Session& DeviceRun::session() { return *parts_->session; }

const std::vector<std::size_t>& DeviceRun::of_device() const { return parts_->of_device; }
const std::vector<std::size_t>& DeviceRun::of_host() const { return parts_->of_host; }

std::vector<double> DeviceRun::train(std::int64_t steps) {
  bench::Session& session = *parts_->session;
  session.allocate();
  const std::string& folder = parts_->config.checkpoint.train_dir.value_or("");
  const auto restored = folder.empty() ? std::nullopt : session.restore(folder);
  const std::int64_t first = restored ? restored->global_step : 0;
  session.start(first);
  std::vector<double> losses;
  for (std::int64_t step = first; step < first + steps; ++step) {
    losses.push_back(parts_->job.total_loss(session.main().run(step, 0.1)));
  }
  if (!folder.empty()) {
    session.save(first + steps);
  }
  return losses;
}

double DeviceRun::evaluate() { return parts_->session->evaluation().run(0, 0).base_loss; }

}  // namespace cnn::tests
