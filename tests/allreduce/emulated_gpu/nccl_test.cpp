// The rules of the emulated NCCL, each broken once.
#include <atomic>

#include "allreduce/nccl/library.h"
#include "tests/allreduce/emulated_gpu/nccl_ranks.h"

namespace cnn::tests::emulated {
namespace {

using testing::HasSubstr;

TEST_F(EmulatedNccl, SumsAndAveragesOverThreads) {
  constexpr std::size_t elements = 200'000;  // several pieces of the memory that ranks share
  on_ranks(3, [&](int number) {
    NcclRank rank(number, elements);
    ASSERT_EQ(rank.join(id, 3, number == 0 ? 1 : 0), ncclSuccess) << "one of them may block";
    ASSERT_EQ(rank.reduce(elements), ncclSuccess);
    EXPECT_EQ(rank.element(0), 6);
    EXPECT_EQ(rank.element(elements - 1), 6);
    ASSERT_EQ(rank.reduce(elements - 1, ncclAvg), ncclSuccess);
    EXPECT_EQ(rank.element(0), 6);
    EXPECT_EQ(rank.element(elements - 1), 6);
  });
}

TEST_F(EmulatedNccl, TakesNoCallWhileTheOneBeforeIsUnderWay) {
  NcclRank rank(0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  EXPECT_EQ(ncclCommInitRankConfig(&rank.communicator, 2, id, 0, &config), ncclInProgress);
  EXPECT_EQ(rank.state(), ncclInProgress) << "the other rank has not come";
  EXPECT_EQ(
      ncclAllReduce(rank.data, rank.data, 1, ncclFloat32, ncclSum, rank.communicator, rank.stream),
      ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(rank.communicator), HasSubstr("before its previous call"));
}

TEST_F(EmulatedNccl, RefusesAConfigurationThatWasNotInitialised) {
  NcclRank rank(0);
  ncclConfig_t config{};
  ncclComm_t communicator = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&communicator, 1, id, 0, &config), ncclInvalidArgument);
  config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(ncclCommInitRankConfig(&communicator, 1, id, 1, &config), ncclInvalidArgument);
  EXPECT_EQ(communicator, nullptr);
}

TEST_F(EmulatedNccl, RefusesAnIdThatItHasNotMade) {
  NcclRank rank(0);
  EXPECT_EQ(rank.join({}, 1), ncclSystemError);
}

TEST_F(EmulatedNccl, RefusesRanksThatDisagreeOnTheirNumber) {
  NcclRank first(0), second(1);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(ncclCommInitRankConfig(&first.communicator, 3, id, 0, &config), ncclInProgress);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  // Either of the two may be the one that finds the mismatch.
  const ncclResult_t status = second.join(id, 2);
  if (status == ncclInvalidArgument) {
    EXPECT_THAT(ncclGetLastError(second.communicator), HasSubstr("joins 2 ranks, others join 3"));
  } else {
    EXPECT_EQ(first.state(), ncclInvalidArgument);
  }
}

TEST_F(EmulatedNccl, RefusesTwoRanksOnOneDevice) {
  std::atomic<int> refused = 0;
  on_ranks(2, [&](int number) {
    NcclRank rank(0);
    rank.number = number;
    refused += rank.join(id, 2) == ncclInvalidUsage ? 1 : 0;
    EXPECT_THAT(ncclGetLastError(rank.communicator), HasSubstr("ranks 0 and 1 are both on device"));
    rank.number = 0;
  });
  EXPECT_EQ(refused, 2);
}

TEST_F(EmulatedNccl, RefusesARankThatJoinsTwice) {
  std::atomic<int> refused = 0;
  on_ranks(2, [&](int device) {
    NcclRank rank(device);
    rank.number = 0;
    refused += rank.join(id, 1) == ncclInvalidUsage ? 1 : 0;
    rank.number = device;
  });
  EXPECT_EQ(refused, 1);
}

TEST_F(EmulatedNccl, NamesUnequalCountsOnAllRanks) {
  on_ranks(2, [&](int number) {
    NcclRank rank(number);
    ASSERT_EQ(rank.join(id, 2), ncclSuccess);
    rank.reduce(number == 0 ? 3 : 5);  // which may tell of the error already
    ASSERT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
    EXPECT_EQ(rank.state(), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(rank.communicator),
                testing::AllOf(HasSubstr("rank 0 reduces 3 elements"),
                               HasSubstr("rank 1 reduces 5 elements")));
    EXPECT_EQ(rank.element(0), static_cast<float>(number + 1)) << "nothing is summed";
  });
}

TEST_F(EmulatedNccl, NamesUnequalOperationsOnAllRanks) {
  on_ranks(2, [&](int number) {
    NcclRank rank(number);
    ASSERT_EQ(rank.join(id, 2), ncclSuccess);
    rank.reduce(3, number == 0 ? ncclSum : ncclAvg);
    ASSERT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
    EXPECT_EQ(rank.state(), ncclInvalidUsage);
  });
}

TEST_F(EmulatedNccl, NamesAReductionThatOnlySomeRanksHaveCaptured) {
  on_ranks(2, [&](int number) {
    NcclRank rank(number);
    ASSERT_EQ(rank.join(id, 2), ncclSuccess);
    cudaGraphExec_t executable = nullptr;
    if (number == 0) {
      rank.begin_capture();
    }
    rank.reduce(3);
    if (number == 0) {
      executable = rank.end_capture();
      ASSERT_EQ(cudaGraphLaunch(executable, rank.stream), cudaSuccess);
    }
    ASSERT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
    EXPECT_EQ(rank.state(), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(rank.communicator), HasSubstr("in a graph"));
    if (number == 0) {
      ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    }
  });
}

TEST_F(EmulatedNccl, LaunchesAGroupAtItsEnd) {
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  ASSERT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
  const Hold hold(rank.stream);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int call = 0; call < 2; ++call) {
    ASSERT_EQ(ncclAllReduce(rank.data, rank.data, 1, ncclFloat32, ncclSum, rank.communicator,
                            rank.stream),
              ncclSuccess);
  }
  EXPECT_EQ(cudaStreamQuery(rank.stream), cudaSuccess) << "nothing is launched";
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  EXPECT_EQ(settled(rank.communicator, ncclInProgress), ncclSuccess);
  EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady);
}

TEST_F(EmulatedNccl, LaunchesNothingOfAGroupWithAWrongCall) {
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  ASSERT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
  const Hold hold(rank.stream);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(
      ncclAllReduce(rank.data, rank.data, 1, ncclFloat32, ncclSum, rank.communicator, rank.stream),
      ncclSuccess);
  EXPECT_EQ(
      ncclAllReduce(nullptr, rank.data, 1, ncclFloat32, ncclSum, rank.communicator, rank.stream),
      ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(cudaStreamQuery(rank.stream), cudaSuccess);
}

TEST_F(EmulatedNccl, EndsNoGroupThatWasNotBegun) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  expect_one_violation("ncclGroupEnd was called without ncclGroupStart");
}

TEST_F(EmulatedNccl, TakesNoMemoryOfAnotherDevice) {
  NcclRank other(1), rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  EXPECT_EQ(settled(rank.communicator, ncclAllReduce(other.data, other.data, 1, ncclFloat32,
                                                     ncclSum, rank.communicator, rank.stream)),
            ncclInvalidArgument);
  expect_one_violation("is no memory of device 0");
}

TEST_F(EmulatedNccl, TakesNoTypeThatItDoesNotEmulate) {
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  EXPECT_EQ(
      ncclAllReduce(rank.data, rank.data, 1, ncclFloat16, ncclSum, rank.communicator, rank.stream),
      ncclInvalidArgument);
  expect_one_violation("float32 only");
}

TEST_F(EmulatedNccl, ScalesWhatItSums) {
  on_ranks(2, [&](int number) {
    NcclRank rank(number);
    ASSERT_EQ(rank.join(id, 2), ncclSuccess);
    float scalar = 0.25F;
    ncclRedOp_t operation{};
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&operation, &scalar, ncclFloat32, ncclScalarHostImmediate,
                                       rank.communicator),
              ncclSuccess);
    ASSERT_EQ(rank.reduce(1, operation), ncclSuccess);
    EXPECT_EQ(rank.element(0), 0.75F);
  });
}

TEST_F(EmulatedNccl, TakesNoOperationOfAnotherCommunicator) {
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  EXPECT_EQ(rank.reduce(1, ncclNumOps), ncclInvalidArgument);
  expect_one_violation("an operation that the communicator does not have");
}

TEST_F(EmulatedNccl, NeedsMemoryOfItsDeviceToStart) {
  on_ranks(2, [&](int number) {
    NcclRank rank(number);
    void* taken = nullptr;
    if (number == 0) {
      ASSERT_EQ(cudaMalloc(&taken, std::size_t{30} << 20U), cudaSuccess);
    }
    EXPECT_EQ(rank.join(id, 2), number == 0 ? ncclUnhandledCudaError : ncclRemoteError);
    if (number == 0) {
      EXPECT_THAT(ncclGetLastError(rank.communicator), HasSubstr("out of memory"));
    }
    ASSERT_EQ(cudaFree(taken), cudaSuccess);
  });
}

TEST_F(EmulatedNccl, NeedsMoreMemoryForTheFirstReduction) {
  NcclRank rank(0);
  std::size_t before = 0, started = 0, reduced = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  ASSERT_EQ(cudaMemGetInfo(&started, &total), cudaSuccess);
  ASSERT_EQ(rank.reduce(1), ncclSuccess);
  ASSERT_EQ(cudaMemGetInfo(&reduced, &total), cudaSuccess);
  EXPECT_LT(started, before);
  EXPECT_LT(reduced, started);
}

TEST_F(EmulatedNccl, FreesItsMemoryWhenItIsAborted) {
  NcclRank rank(0);
  std::size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  ASSERT_EQ(rank.reduce(1), ncclSuccess);
  ASSERT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
  rank.communicator = nullptr;
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(after, before);
}

TEST_F(EmulatedNccl, WaitsForOtherRanksUntilItIsAborted) {
  on_ranks(2, [&](int number) {
    NcclRank rank(number);
    ASSERT_EQ(rank.join(id, 2), ncclSuccess);
    if (number == 0) {
      ASSERT_EQ(rank.reduce(1), ncclSuccess);  // the other rank does not come
      EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady);
      ASSERT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
      rank.communicator = nullptr;
      EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
    }
  });
}

TEST_F(EmulatedNccl, IsNotUsedAfterItIsAborted) {
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  const ncclComm_t aborted = std::exchange(rank.communicator, nullptr);
  ASSERT_EQ(ncclCommAbort(aborted), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(aborted), ncclInvalidArgument);
  expect_one_violation("ncclCommAbort was given a communicator that is aborted");
}

TEST_F(EmulatedNccl, BlocksInAnAbortWhileARecordingLives) {
  const Variable shorter("CNN_EMULATED_NCCL_ABORT_SECONDS", "1");
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  rank.begin_capture();
  ASSERT_EQ(rank.reduce(1), ncclSuccess);
  const cudaGraphExec_t executable = rank.end_capture();
  ASSERT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
  rank.communicator = nullptr;
  expect_one_violation("ncclCommAbort waits for a graph");
  ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_F(EmulatedNccl, AbortsOnceTheRecordingIsDestroyed) {
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  rank.begin_capture();
  ASSERT_EQ(rank.reduce(1), ncclSuccess);
  const cudaGraphExec_t executable = rank.end_capture();
  std::atomic<bool> destroyed = false;
  std::thread aborting([&] {
    EXPECT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
    EXPECT_TRUE(destroyed);
  });
  destroyed = true;
  ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  aborting.join();
  rank.communicator = nullptr;
}

TEST_F(EmulatedNccl, BlocksInAnAbortWhileACaptureIsUnderWay) {
  const Variable shorter("CNN_EMULATED_NCCL_ABORT_SECONDS", "1");
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  rank.begin_capture();
  ASSERT_EQ(rank.reduce(1), ncclSuccess);
  ASSERT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
  rank.communicator = nullptr;
  expect_one_violation("ncclCommAbort waits for a graph");
  ASSERT_EQ(cudaGraphExecDestroy(rank.end_capture()), cudaSuccess);
}

TEST_F(EmulatedNccl, HoldsNoReferenceToACaptureThatHasFailed) {
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  rank.begin_capture();
  ASSERT_EQ(rank.reduce(1), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(rank.stream, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  EXPECT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
  rank.communicator = nullptr;
}

TEST_F(EmulatedNccl, BlocksInAnAbortWhileItsDeviceWorks) {
  const Variable shorter("CNN_EMULATED_NCCL_ABORT_SECONDS", "1");
  NcclRank rank(0), other(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  ASSERT_EQ(cudaStreamSynchronize(other.stream), cudaSuccess);
  {
    const Hold hold(other.stream);
    ASSERT_EQ(cudaMemcpyAsync(other.data, other.host, 4, cudaMemcpyDefault, other.stream),
              cudaSuccess);
    ASSERT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
  }
  rank.communicator = nullptr;
  expect_one_violation("the work of its device");
}

TEST_F(EmulatedNccl, IsToldOfMemoryForAsLongAsItLives) {
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  void* handle = nullptr;
  EXPECT_EQ(ncclCommRegister(rank.communicator, rank.data, 1U << 20U, &handle), ncclInvalidArgument)
      << "it leaves its block";
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  ASSERT_EQ(ncclCommRegister(rank.communicator, memory, 64, &handle), ncclSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  expect_one_violation("which a communicator knows of");
  EXPECT_EQ(ncclCommDeregister(rank.communicator, handle), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(rank.communicator, handle), ncclInvalidArgument);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(EmulatedNccl, ForgetsMemoryWhenItIsAborted) {
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  void* handle = nullptr;
  ASSERT_EQ(ncclCommRegister(rank.communicator, rank.data, 64, &handle), ncclSuccess);
  ASSERT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
  rank.communicator = nullptr;  // the end of the rank frees the memory
}

TEST_F(EmulatedNccl, TellsOfLostConnectionsOnAllRanks) {
  const Variable fault("CNN_EMULATED_NCCL_FAULT", "error:1:1");
  on_ranks(2, [&](int number) {
    NcclRank rank(number);
    ASSERT_EQ(rank.join(id, 2), ncclSuccess);
    ASSERT_EQ(rank.reduce(1), ncclSuccess);
    EXPECT_EQ(rank.element(0), 3) << "the first reduction is well";
    rank.reduce(1);
    while (rank.state() == ncclSuccess) {
      std::this_thread::yield();
    }
    EXPECT_EQ(rank.state(), number == 1 ? ncclSystemError : ncclRemoteError);
    EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady) << "its kernel is to be aborted";
    ASSERT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
    rank.communicator = nullptr;
  });
}

TEST_F(EmulatedNccl, RefusesALaunchOnRequest) {
  const Variable fault("CNN_EMULATED_NCCL_FAULT", "refuse:0:1");
  NcclRank rank(0);
  ASSERT_EQ(rank.join(id, 1), ncclSuccess);
  ASSERT_EQ(rank.reduce(1), ncclSuccess);
  EXPECT_EQ(rank.reduce(1), ncclSystemError);
}

TEST_F(EmulatedNccl, DelaysARankOnRequest) {
  const Variable fault("CNN_EMULATED_NCCL_FAULT", "delay:1:0:50");
  on_ranks(2, [&](int number) {
    NcclRank rank(number);
    ASSERT_EQ(rank.join(id, 2), ncclSuccess);
    const auto before = std::chrono::steady_clock::now();
    ASSERT_EQ(rank.reduce(1), ncclSuccess);
    EXPECT_EQ(rank.element(0), 3);
    EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(50));
  });
}

TEST_F(EmulatedNccl, IsOpenedByName) {
  const allreduce::nccl::Library library = allreduce::nccl::open_library(CNN_EMULATED_NCCL);
  EXPECT_EQ(library.version, NCCL_VERSION_CODE);
  EXPECT_NE(library.attach, nullptr);
  EXPECT_NE(library.detach, nullptr);
  allreduce::nccl::UniqueId made;
  EXPECT_EQ(library.get_unique_id(&made), allreduce::nccl::success);
  EXPECT_NE(made.bytes[0], 0);
}

// The program declares the part of NCCL's interface that it uses.
TEST_F(EmulatedNccl, HasTheNumbersThatTheProgramUses) {
  namespace nccl = allreduce::nccl;
  EXPECT_EQ(nccl::success, ncclSuccess);
  EXPECT_EQ(nccl::system_error, ncclSystemError);
  EXPECT_EQ(nccl::remote_error, ncclRemoteError);
  EXPECT_EQ(nccl::in_progress, ncclInProgress);
  EXPECT_EQ(nccl::float32, ncclFloat32);
  EXPECT_EQ(nccl::sum, ncclSum);
  EXPECT_EQ(nccl::host_scalar, ncclScalarHostImmediate);
  EXPECT_EQ(sizeof(nccl::UniqueId), sizeof(ncclUniqueId));
  const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(nccl::Config().magic, initial.magic);
  EXPECT_EQ(offsetof(nccl::Config, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_LE(sizeof(nccl::Config), initial.size);
}

}  // namespace
}  // namespace cnn::tests::emulated
