#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "allreduce/forwarding_transport.h"

namespace cnn::allreduce {

// The options of warnings about a rank that waits for another one for long.
struct StallWarning {
  std::chrono::milliseconds after{60'000};  // the first warning, and the time between two
  // Prints a line such as "rank 0 has waited for rank 2 for 60 s, in bucket 4; rank 2 computes step
  // 12". Empty: there are no warnings.
  std::function<void(const std::string&)> say = {};
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// A transport that warns when its rank waits for long, as the stall inspector of Horovod does.
class StallWarningTransport final : public ForwardingTransport {
 public:
  StallWarningTransport(Transport& transport, StallWarning warning);

  // Tells that the reduction of this bucket begins.
  void begin(std::size_t bucket) { bucket_ = bucket; }

  void idle(int waits_for) override;
  void busy() override;

 private:
  StallWarning warning_;
  std::size_t bucket_ = 0;
  unsigned idle_ = 0;  // calls of idle() in this wait
  int warnings_ = 0;   // in this wait
  std::chrono::steady_clock::time_point last_check_;
  std::chrono::steady_clock::duration waited_{};
};

}  // namespace cnn::allreduce
