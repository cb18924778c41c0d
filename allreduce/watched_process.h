#pragma once

namespace cnn::allreduce {

// A process of this machine whose end can be seen; 0: nobody.
class WatchedProcess {
 public:
  explicit WatchedProcess(int process);
  WatchedProcess(WatchedProcess&& other) noexcept;
  WatchedProcess& operator=(WatchedProcess&&) = delete;
  ~WatchedProcess();

  bool ended() const;
  int process() const { return process_; }

 private:
  int process_, descriptor_;
};

}  // namespace cnn::allreduce
