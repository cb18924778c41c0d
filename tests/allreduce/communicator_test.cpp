#include "allreduce/communicator.h"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allreduce/forwarding_transport.h"
#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

using tests::as_threads;

std::span<float> floats(Transport& transport, std::size_t n) {
  return {reinterpret_cast<float*>(transport.allocate_shared(n * sizeof(float)).data()), n};
}

TEST(BucketCommunicator, ReducesEachBucketByItsFastestAlgorithm) {
  const auto errors = as_threads(4, {.segment_bytes = 1 << 24U}, [](Transport& transport) {
    BucketCommunicator communicator(transport, *tests::usable_loops().back(),
                                    {.topology = ranks_on_hosts(4, 1),
                                     .peers_memory = false,
                                     .links = {.latency = 1e-4, .post = 1e-4, .host = 1e9}});
    const std::vector<std::span<float>> small{floats(transport, 10), floats(transport, 3)};
    const std::vector<std::span<float>> large{floats(transport, 500'000)};
    for (int step = 0; step < 3; ++step) {
      const auto value = static_cast<float>(transport.rank() + step);
      std::ranges::fill(small[0], value);
      std::ranges::fill(small[1], 2 * value);
      std::ranges::fill(large[0], 3 * value);
      communicator.all_reduce(0, small, 1);
      communicator.all_reduce(1, large, 0.5F);
      const auto sum = static_cast<float>(6 + 4 * step);
      EXPECT_EQ(small[0][9], sum);
      EXPECT_EQ(small[1][0], 2 * sum);
      EXPECT_EQ(large[0][499'999], 1.5F * sum);
    }
    EXPECT_EQ(communicator.buckets(), 2U);
    EXPECT_EQ(communicator.choice(0).algorithm->name, "doubling");
    EXPECT_NE(communicator.choice(1).algorithm->name, "doubling");
  });
  EXPECT_EQ(errors, std::vector<std::string>(4));
}

// A transport whose rank ends with an error at one of its barriers.
class EndingTransport final : public ForwardingTransport {
 public:
  EndingTransport(Transport& transport, int barriers)
      : ForwardingTransport(transport), barriers_(barriers) {}
  void ends_in_this_reduction() { counts_ = true; }
  void arrive(std::span<const int> group, std::size_t channel) override {
    if (counts_ && barriers_-- == 0) {
      throw Error("the end");
    }
    ForwardingTransport::arrive(group, channel);
  }

 private:
  int barriers_;
  bool counts_ = false;
};

// Returns rank 0's error about rank 1, which ends in its third reduction of a bucket after
// `barriers` barriers.
std::string verdict(int barriers, bool with_steps) {
  const auto errors = as_threads(2, {.segment_bytes = 1 << 20U}, [&](Transport& transport) {
    EndingTransport ending(transport, barriers);
    BucketCommunicator communicator(ending, *tests::usable_loops().back(),
                                    {.topology = ranks_on_hosts(1, 2),
                                     .rules = {{.algorithm = &find("shared"), .options = {}}}});
    const std::span<float> piece = floats(transport, 1000);
    for (int step = 14; step < 17; ++step) {
      if (with_steps) {
        transport.progress()->store(progress_at(Phase::compute, step));
      }
      if (transport.rank() == 1 && step == 16) {
        ending.ends_in_this_reduction();
      }
      communicator.all_reduce(4, {&piece, 1}, 1);
    }
  });
  return errors[0];
}

TEST(BucketCommunicator, NamesStepBucketAndPhaseOfALostRank) {
  EXPECT_EQ(verdict(0, true),
            "rank 1 is lost: it has left | seen by rank 0 | in step 17, bucket 4, reduce-scatter");
  EXPECT_EQ(verdict(1, true),
            "rank 1 is lost: it has left | seen by rank 0 | in step 17, bucket 4, all-gather");
  EXPECT_EQ(verdict(0, false),
            "rank 1 is lost: it has left | seen by rank 0 | in reduction 3 of bucket 4, "
            "reduce-scatter");
}

// Settings of two ranks with a message buffer of 2 bytes an element.
Settings direct_in_bf16() {
  return {.topology = ranks_on_hosts(1, 2),
          .wire = Wire::bf16,
          .rules = {{.algorithm = &find("direct"), .options = {}}}};
}

TEST(BucketCommunicator, ReusesTheMessageBuffersOfReleasedBuckets) {
  constexpr std::size_t most = 40'000, segment = 16 * most;  // the buffer, and 12 bytes an element
  const auto errors = as_threads(2, {.segment_bytes = segment}, [](Transport& transport) {
    BucketCommunicator communicator(transport, *tests::usable_loops().back(), direct_in_bf16());
    const std::span<float> buffer = floats(transport, most);
    std::size_t bucket = 0;
    for (std::size_t elements = most / 4; elements <= most; elements += most / 100) {
      const std::span<float> piece = buffer.first(elements);
      for (int time = 0; time < 2; ++time) {
        std::ranges::fill(piece, static_cast<float>(transport.rank() + 1));
        communicator.all_reduce(bucket, {&piece, 1}, 1);
        EXPECT_EQ(piece.front(), 3);
        EXPECT_EQ(piece.back(), 3);
      }
      communicator.release(bucket++);
    }
    const std::span<float> again = buffer.first(10);
    std::ranges::fill(again, 1.0F);
    communicator.all_reduce(0, {&again, 1}, 1);
    EXPECT_EQ(again.back(), 2) << "a released bucket may come again with another size";
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(BucketCommunicator, TakesTheMessageBufferOfTheLargestBucketOnce) {
  constexpr std::size_t most = 40'960, others = 65'536;
  constexpr std::size_t segment =
      (sizeof(float) + 2) * most + others;  // a message has 2 bytes each
  const auto errors = as_threads(2, {.segment_bytes = segment}, [](Transport& transport) {
    BucketCommunicator communicator(transport, *tests::usable_loops().back(), direct_in_bf16());
    const std::span<float> buffer = floats(transport, most);
    communicator.reserve(most);
    communicator.reserve(most / 2);
    for (std::size_t bucket = 0, elements = most / 16; elements <= most; elements *= 2) {
      const std::span<float> piece = buffer.first(elements);
      std::ranges::fill(piece, static_cast<float>(transport.rank() + 1));
      communicator.all_reduce(bucket, {&piece, 1}, 1);
      EXPECT_EQ(piece.back(), 3);
      communicator.release(bucket++);
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(BucketCommunicator, SaysWhenRanksDiffer) {
  const auto errors = as_threads(2, {.segment_bytes = 1 << 20U}, [](Transport& transport) {
    BucketCommunicator communicator(transport, *tests::usable_loops().back(),
                                    {.topology = ranks_on_hosts(1, 2)});
    const std::span<float> mine = floats(transport, 100).first(transport.rank() == 0 ? 100 : 99);
    communicator.all_reduce(0, {&mine, 1}, 1);
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("ranks do not exchange the same: bucket 0 of 1 tensors"),
              std::string::npos)
        << error;
  }
}

TEST(BucketCommunicator, ComparesSumsIfItIsAskedTo) {
  for (const bool compares : {false, true}) {
    const auto errors = as_threads(2, {.segment_bytes = 1 << 20U}, [&](Transport& transport) {
      BucketCommunicator communicator(
          transport, *tests::usable_loops().back(),
          {.topology = ranks_on_hosts(1, 2),
           .compares = compares,
           .fault = Fault{.kind = Fault::Kind::corrupt, .rank = 1, .step = 2}});
      const std::span<float> mine = floats(transport, 100);
      for (int step = 0; step < 2; ++step) {
        communicator.all_reduce(0, {&mine, 1}, 1);
      }
    });
    for (const std::string& error : errors) {
      EXPECT_EQ(error.find("ranks have different sums: bucket 0 on rank ") != std::string::npos,
                compares)
          << error;
    }
  }
}

TEST(BucketCommunicator, ProvesABucketAndRestoresItsValues) {
  for (const int ranks : {2, 3}) {
    for (const Wire wire : {Wire::f32, Wire::bf16}) {
      const auto errors = as_threads(ranks, {.segment_bytes = 1 << 20U}, [&](Transport& transport) {
        BucketCommunicator communicator(
            transport, *tests::usable_loops().back(),
            {.topology = ranks_on_hosts(ranks, 1), .wire = wire, .proves = true});
        const std::span<float> all = floats(transport, 3000);
        const std::span<float> pieces[] = {all.first(100), all.last(2000)};
        std::ranges::fill(all, 0.5F);
        communicator.all_reduce(0, pieces, 2);
        EXPECT_EQ(all[0], static_cast<float>(ranks));
        EXPECT_EQ(all[500], 0.5F);
        EXPECT_EQ(all[2999], static_cast<float>(ranks));
      });
      EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
    }
  }
}

// Returns loops that add one element wrong if the sum is longer than a hash.
simd::Loops inexact_loops() {
  simd::Loops loops = simd::plain_loops();
  loops.sum = [](const simd::Sum& sum) {
    simd::plain_loops().sum(sum);
    for (std::size_t i = 0; sum.n > 6 && i < sum.outputs; ++i) {
      sum.to[i][sum.n - 1] += 1;
    }
  };
  return loops;
}

TEST(BucketCommunicator, NamesTheSumThatAProofFindsWrong) {
  const simd::Loops loops = inexact_loops();
  const auto errors = as_threads(2, {.segment_bytes = 1 << 20U}, [&](Transport& transport) {
    BucketCommunicator communicator(transport, loops,
                                    {.topology = ranks_on_hosts(1, 2), .proves = true});
    const std::span<float> mine = floats(transport, 100);
    communicator.all_reduce(0, {&mine, 1}, 1);
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("a sum is wrong: element "), std::string::npos) << error;
  }
}

TEST(BucketCommunicator, KeepsTheValuesOfASingleRank) {
  const auto errors = as_threads(1, {.segment_bytes = 1 << 20U}, [](Transport& transport) {
    BucketCommunicator communicator(transport, *tests::usable_loops().back(),
                                    {.topology = ranks_on_hosts(1, 1)});
    const std::span<float> mine = floats(transport, 5);
    std::ranges::fill(mine, 2.0F);
    communicator.all_reduce(0, {&mine, 1}, 1);
    EXPECT_EQ(mine[4], 2);
  });
  EXPECT_EQ(errors[0], "");
}

}  // namespace
}  // namespace cnn::allreduce
