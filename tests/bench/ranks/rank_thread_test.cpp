#include "bench/ranks/rank_thread.h"

#include <exception>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "allreduce/transport.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using allreduce::PeerLost;

std::exception_ptr lost(int rank, PeerLost::Source source = PeerLost::Source::observed) {
  return std::make_exception_ptr(PeerLost(rank, "rank is lost", source));
}
std::exception_ptr own(const char* text) { return std::make_exception_ptr(Error(text)); }

TEST(RethrowCause, ReturnsWhereNoRankHasFailed) {
  EXPECT_NO_THROW(rethrow_cause({}));
  EXPECT_NO_THROW(rethrow_cause({nullptr, nullptr}));
}

TEST(RethrowCause, PrefersTheRankThatFailedByItself) {
  EXPECT_EQ(tests::error_of([] {
              rethrow_cause({lost(2), nullptr, own("no memory"), own("later")});
            }),
            "no memory");
}

TEST(RethrowCause, TakesTheFirstOfSeveralLostPeers) {
  try {
    rethrow_cause({nullptr, lost(3), lost(5)});
    ADD_FAILURE() << "rethrow_cause() threw nothing";
  } catch (const allreduce::PeerLost& error) {
    EXPECT_EQ(error.rank(), 3);
  }
}

// The culprit itself may be told of its failure, and comes first in the order of ranks.
TEST(RethrowCause, PrefersARankThatHasObservedTheFailure) {
  const auto cause = [](const std::vector<std::exception_ptr>& errors) {
    try {
      rethrow_cause(errors);
    } catch (const PeerLost& error) {
      return error.rank();
    }
    return -1;
  };
  constexpr auto told = PeerLost::Source::told;
  EXPECT_EQ(cause({lost(0, told), lost(1), lost(2), lost(3, told)}), 1);
  EXPECT_EQ(cause({nullptr, lost(4, told), lost(5, told)}), 4) << "nobody has observed it";
}

TEST(RankThread, RunsWorkAfterWorkOnOneThreadOfItsOwn) {
  RankThread rank;
  std::vector<std::thread::id> ids;
  for (int round = 0; round < 3; ++round) {
    rank.start([&] { ids.push_back(std::this_thread::get_id()); });
    EXPECT_EQ(rank.wait(), nullptr);
  }
  ASSERT_EQ(ids.size(), 3U);
  EXPECT_NE(ids[0], std::this_thread::get_id());
  EXPECT_EQ(ids[0], ids[2]);
}

TEST(RankThread, ReturnsTheErrorOfTheWorkThatThrew) {
  RankThread rank;
  rank.start([] { throw Error("out of memory"); });
  const std::exception_ptr error = rank.wait();
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(tests::error_of([&] { std::rethrow_exception(error); }), "out of memory");
  rank.start([] {});
  EXPECT_EQ(rank.wait(), nullptr) << "wait() reports the latest work only";
}

}  // namespace
}  // namespace cnn::bench
