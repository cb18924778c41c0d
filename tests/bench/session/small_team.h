#pragma once

#include <memory>
#include <string>
#include <vector>

namespace cnn::bench {
struct Backend;
struct Config;
struct Job;
struct RankContext;
class Team;
}  // namespace cnn::bench

namespace cnn::tests {

// The team of a run with these flags whose steps take almost no time. It is allocated but not
// started.
class SmallTeam {
  struct Parts;
  std::unique_ptr<Parts> parts_;

 public:
  explicit SmallTeam(const std::vector<std::string>& more = {});
  ~SmallTeam();
  SmallTeam(const SmallTeam&) = delete;
  SmallTeam& operator=(const SmallTeam&) = delete;

  bench::Config& config;
  bench::Backend& backend;
  bench::RankContext& context;
  bench::Job& job;
  bench::Team& team;
};

}  // namespace cnn::tests
