// Compares the lower bound with the optimum of its linear program, which an independent solver
// finds.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <sstream>
#include <string>
#include <sys/wait.h>

#include "lms/bound.h"
#include "tests/lms/random_step.h"
#include "tests/support/files.h"

namespace cnn::lms {
namespace {

using tests::StepCase;

std::string json(const Movable& one) {
  std::ostringstream out;
  out.precision(17);
  out << R"({"bytes":)" << one.bytes << R"(,"made":)" << one.made << R"(,"first_backward":)"
      << one.first_backward << R"(,"on_host":)" << (one.on_host ? 1 : 0) << R"(,"may_copy":)"
      << (one.may_copy ? 1 : 0) << R"(,"again":)" << (one.again == Movable::never ? -1 : one.again)
      << "}";
  return out.str();
}

std::string json(const PressureStep& step) {
  std::ostringstream out;
  out.precision(17);
  out << R"({"seconds":)" << step.seconds << R"(,"live":)" << step.live << R"(,"away":[)";
  for (std::size_t i = 0; i < step.away.size(); ++i) {
    out << (i > 0 ? "," : "") << step.away[i];
  }
  out << "]}";
  return out.str();
}

template <class T>
std::string json(const std::vector<T>& all) {
  std::string text = "[";
  for (const T& one : all) {
    text += (text.size() > 1 ? "," : "") + json(one);
  }
  return text + "]";
}

void write(const std::filesystem::path& path, const Request& request) {
  const Pressure pressed = pressure(request);
  std::ofstream(path) << R"({"device":)" << request.budget.device << R"(,"host":)"
                      << request.budget.host << R"(,"out":)" << request.costs.out_bytes_per_second
                      << R"(,"in":)" << request.costs.in_bytes_per_second << R"(,"both":)"
                      << request.costs.both_bytes_per_second << R"(,"steps":)"
                      << json(pressed.steps) << R"(,"movables":)" << json(pressed.movables)
                      << "}\n";
}

// Returns no value if this machine has no Python or no LP solver.
std::optional<double> solved(const Request& request) {
  const tests::TemporaryFolder folder;
  const std::filesystem::path instance = folder.path() / "lp.json", answer = folder.path() / "out";
  write(instance, request);
  const std::string command = "python3 " CNN_SOURCE_DIR "/tests/lms/solve_lp.py " +
                              instance.string() + " > " + answer.string();
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe,cert-env33-c)
  if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) {
    return std::nullopt;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  double seconds = 0;
  std::ifstream(answer) >> seconds;
  return seconds;
}

TEST(LinearProgram, IsNearTheBound) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    StepCase c = tests::random_step(seed);
    c.budget.device = c.peak(c.schedule).device_bytes * 7 / 10;
    c.costs.out_bytes_per_second = seed % 2 == 0 ? 20 : 100;
    c.costs.in_bytes_per_second = seed % 3 == 0 ? 30 : 200;
    const double bound = lower_bound(c.request()).seconds_fluid;
    if (bound == Movable::never) {
      continue;  // no plan fits this budget
    }
    const std::optional<double> optimum = solved(c.request());
    if (!optimum) {
      GTEST_SKIP() << "scipy is not installed";
    }
    EXPECT_LE(bound, *optimum * (1 + 1e-6));
    EXPECT_GE(bound, *optimum * 0.97);
  }
}

}  // namespace
}  // namespace cnn::lms
