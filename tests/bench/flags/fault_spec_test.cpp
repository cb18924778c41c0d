#include "bench/flags/fault_spec.h"

#include <gtest/gtest.h>
#include <string>

#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

std::string fault_error(const std::string& spec) {
  return tests::error_of([&] { parse_fault_spec(spec); });
}

TEST(FaultSpec, HasARankAndAKindAndAMoment) {
  const FaultSpec first = parse_fault_spec("rank=2,what=kill");
  EXPECT_EQ(first.rank, 2);
  EXPECT_EQ(first.what, "kill");
  EXPECT_EQ(first.step, 1);
  EXPECT_EQ(first.bucket, 0);
  EXPECT_EQ(first.after, 0);
  const FaultSpec later = parse_fault_spec("what=delay:3s,after=7,bucket=4,step=5,rank=0");
  EXPECT_EQ(later.what, "delay");
  EXPECT_EQ(later.milliseconds, 3000);
  EXPECT_EQ(later.rank, 0);
  EXPECT_EQ(later.bucket, 4);
  EXPECT_EQ(later.step, 5);
  EXPECT_EQ(later.after, 7);
  EXPECT_EQ(parse_fault_spec("rank=0,what=delay:200ms").milliseconds, 200);
}

TEST(FaultSpec, MayFlipABitOfATensor) {
  const FaultSpec flip =
      parse_fault_spec("rank=2,step=7,what=flip,tensor=v/cg/conv0/conv2d/kernel");
  EXPECT_EQ(flip.what, "flip");
  EXPECT_EQ(flip.step, 7);
  EXPECT_EQ(flip.tensor, "v/cg/conv0/conv2d/kernel");
  EXPECT_TRUE(flips_a_bit("rank=0,what=flip"));
  EXPECT_FALSE(flips_a_bit("rank=0,what=kill"));
  EXPECT_FALSE(flips_a_bit("what=flip")) << "whose?";
  EXPECT_FALSE(flips_a_bit(std::nullopt));
}

TEST(FaultSpec, SaysInOneLineWhatIsWrong) {
  EXPECT_EQ(fault_error("what=kill"),
            "--comm_fault=what=kill: it needs a rank and a fault to inject, such as "
            "rank=1,what=kill");
  EXPECT_EQ(fault_error("rank=1,what=explode"),
            "--comm_fault=rank=1,what=explode: what=explode: must be exit, kill, stop, corrupt, "
            "flip or a delay such as delay:200ms");
  EXPECT_EQ(fault_error("rank=one,what=kill"),
            "--comm_fault=rank=one,what=kill: rank=one: must be a whole number from 0 on");
  EXPECT_EQ(fault_error("rank=1,what=kill,when=now"),
            "--comm_fault=rank=1,what=kill,when=now: it has no 'when', only rank, what, bucket, "
            "step, after and tensor");
  for (const char* const bad :
       {"", ",", "rank", "rank=", "rank=1", "rank=-1,what=kill", "rank=1,what=delay",
        "rank=1,what=delay:", "rank=1,what=delay:5", "rank=1,what=delay:-5ms",
        "rank=1,what=delay:99999999999s", "rank=1,what=kill:5ms", "rank=1,what=kill,step=0",
        "rank=1,what=kill,bucket=9999999999", "rank=1,,what=kill", "rank=1,what=kill,tensor=conv#1",
        "rank=1,what=flip,bucket=1", "rank=1,what=flip,after=1", "rank=1,what=flip:3"}) {
    EXPECT_NE(fault_error(bad), "") << bad;
  }
}

}  // namespace
}  // namespace cnn::bench
