// Mutation fuzzing: changes small valid files at random places. The reader must either succeed or
// throw Error. A crash, another exception or an excessive allocation ends the test program;
// sanitizers find further errors.
#include <algorithm>
#include <array>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "data/catalog.h"
#include "data/checkpoint.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t limit) {
  return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
}

// Returns a byte that is special in some format, such as a limit of a length, an opcode or JSON.
char interesting(Random& random) {
  constexpr std::string_view bytes("\x00\x01\x7f\x80\xff\x1f\x8b(]})tRbcu.e0a2\x95\x8e\x93\"{[-9",
                                   29);
  return below(random, 2) == 0 ? bytes[below(random, bytes.size())]
                               : static_cast<char>(below(random, 256));
}

// Prefers places at both ends of a file, where headers and trailers are.
std::size_t place_in(Random& random, std::size_t size) {
  const std::size_t edge = std::min<std::size_t>(size, 300);
  switch (below(random, 3)) {
    case 0:
      return below(random, edge);
    case 1:
      return size - 1 - below(random, edge);
    default:
      return below(random, size);
  }
}

std::string mutated(std::string bytes, Random& random) {
  const std::size_t changes = 1 + below(random, 4);
  for (std::size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t at = place_in(random, bytes.size());
    switch (below(random, 8)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, 1 + below(random, 8), interesting(random));
        break;
      case 2:
        bytes.erase(at, 1 + below(random, 8));
        break;
      case 3:
        bytes.insert(at, bytes.substr(place_in(random, bytes.size()), 1 + below(random, 40)));
        break;
      default:
        bytes[at] = interesting(random);
    }
  }
  return bytes;
}

struct Outcome {
  int accepted = 0, rejected = 0;
};

// Writes `rounds` mutants of the file under its own name and calls `read` for each.
Outcome survive(const std::filesystem::path& path, int rounds, const std::function<void()>& read) {
  Random random(20240117);  // NOLINT: the same mutants every time
  const std::string original = read_file(path);
  read();  // the original is valid
  Outcome outcome;
  const TemporaryFolder other;
  for (int round = 0; round < rounds; ++round) {
    other.write("mutant", mutated(original, random));
    std::filesystem::rename(other.path() / "mutant", path);
    error_of(read).empty() ? ++outcome.accepted : ++outcome.rejected;
  }
  return outcome;
}

void read_everything(const Dataset& dataset) {
  std::vector<std::byte> image(dataset.format().bytes());
  std::int32_t label = 0;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, {image, &label});
    ASSERT_TRUE(label >= 0 && label < dataset.classes());
  }
}

TEST(Mutants, NeverCrashForMnistFiles) {
  for (const bool compressed : {false, true}) {
    const TemporaryFolder folder;
    write_mnist(folder, 3);
    std::filesystem::path images = folder.path() / "train-images-idx3-ubyte";
    if (compressed) {
      const std::string plain = read_file(images);
      std::filesystem::remove(images);
      images = folder.write("train-images-idx3-ubyte.gz", gzip(plain));
    }
    const Outcome outcome = survive(images, 500, [&] {
      read_everything(*open(find("mnist"), {.dir = folder.path().string()}));
    });
    EXPECT_GT(outcome.rejected, 200);
  }
}

TEST(Mutants, NeverCrashForCifar10Pickles) {
  for (const char* name : {"python2_protocol2.pickle", "numpy2_protocol3.pickle",
                           "numpy2_protocol4.pickle", "numpy2_protocol5.pickle"}) {
    const TemporaryFolder folder;
    const auto source = std::filesystem::path(CNN_SOURCE_DIR) / "tests/data/pickles" / name;
    const auto path = folder.write("test_batch", read_file(source));
    const Outcome outcome = survive(path, 600, [&] {
      read_everything(*open(find("cifar10"), {.dir = folder.path().string(), .training = false}));
    });
    EXPECT_GT(outcome.rejected, 225) << name;
  }
}

TEST(Mutants, NeverCrashForCifar10Records) {
  const TemporaryFolder folder;
  const auto path = folder.write("test_batch.bin", std::string(2 * 3073, '\1'));
  const Outcome outcome = survive(path, 300, [&] {
    read_everything(*open(find("cifar10"), {.dir = folder.path().string(), .training = false}));
  });
  EXPECT_GT(outcome.rejected, 100);
}

TEST(Mutants, NeverCrashForTensors) {
  const TemporaryFolder folder;
  const auto path = write_tensors(folder, 4);
  const Outcome outcome =
      survive(path, 1500, [&] { read_everything(*open(find("tensors"), {.dir = path.string()})); });
  EXPECT_GT(outcome.rejected, 500);
  EXPECT_GT(outcome.accepted, 50);  // a changed pixel is still a valid pixel
}

TEST(Mutants, NeverCrashForCheckpoints) {
  const TemporaryFolder folder;
  const std::vector<NamedTensor> tensors{
      {"v/a", {2, 2}}, {"v/b", {4}}, {"v/a/Momentum", {2, 2}, false}};
  const std::array<float, 4> values{1, 2, 3, 4};
  const auto path = save({.train_dir = folder.path(), .global_step = 3}, tensors,
                         [&](std::size_t) { return std::span<const float>(values); });
  const Outcome outcome = survive(path, 1500, [&] {
    load(path, tensors,
         [](std::size_t, std::span<const float> read) { ASSERT_EQ(read.size(), 4U); });
  });
  EXPECT_GT(outcome.rejected, 500);
}

TEST(Mutants, NeverCrashForTheIndexOfCheckpoints) {
  const TemporaryFolder folder;
  folder.write("model.ckpt-3.safetensors", "");
  const auto path = folder.write("checkpoint", "model_checkpoint_path: \"model.ckpt-3\"\n");
  const auto expected = folder.path() / "model.ckpt-3.safetensors";
  survive(path, 500, [&] {
    const auto found = find_newest(folder.path());
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(std::filesystem::equivalent(*found, expected));
  });
}

}  // namespace
}  // namespace cnn::data
