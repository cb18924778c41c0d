#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>

#include "tests/allreduce/mpi/ranks.h"

// Each rank runs every test, all at the same time.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    cnn::allreduce::World& world = cnn::tests::this_world();
    const int failed = RUN_ALL_TESTS();
    if (failed == 0) {
      world.finish();
    }
    return failed;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
