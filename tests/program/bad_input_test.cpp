#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

struct Case {
  Words flags;
  std::string says;  // a part of the single line on stderr
};

// Every refusal ends with status 1 and one line that names the error and the remedy.
void expect_refused(const Case& row) {
  const Finished run = run_program(row.flags);
  EXPECT_EQ(run.status, 1) << row.says << ": " << run.err;
  EXPECT_NE(run.err.find(row.says), std::string::npos) << run.err;
  const auto last = run.err.find_last_not_of('\n');
  ASSERT_NE(last, std::string::npos);
}

TEST(BadInput, IsRefusedInOneLineOnTheCommandLine) {
  for (const Case& row :
       std::vector<Case>{{{"--batchsize=3"}, "batch_size"},
                         {{"--model=resnet51"}, "--model=resnet51: no such model"},
                         {{"--batch_size=many"}, "batch_size"},
                         {{"--batch_size=99999999999"}, "batch_size"},
                         {{"--num_batches=-1"}, "num_batches"},
                         {{"--display_every=0"}, "display_every"},
                         {{"--eval"}, "train_dir"},
                         {{"--forward_only", "--eval", "--train_dir=/tmp"}, "forward_only"},
                         {{"--num_batches=1", "--num_epochs=1"}, "num_epochs"},
                         {{"stray"}, "positional"},
                         {{"--num_gpus=65"}, "num_gpus"},
                         {{"--cpu=skl"}, "--cpu is a flag of other releases"},
                         {{"--lms", "--lms_policy=magic"}, "lms_policy"},
                         {{"--device_memory_mb=99", "--emulate_link_gbps=0"}, "emulate_link_gbps"},
                         {{"--model=vgg16", "--image_size=8"}, "image_size"}}) {
    expect_refused(row);
    Words flags = row.flags;
    flags.emplace_back("--device=cpu");  // otherwise a line may say why there is no GPU
    const Finished run = run_program(flags);
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

TEST(BadInput, EndsWithTheOutOfMemoryCodeForImmenseImages) {
  const Finished run = run_program({"--device=cpu", "--model=lenet", "--image_size=99999999"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_NE(run.err.find("out of memory: tensor"), std::string::npos) << run.err;
}

TEST(BadInput, IsRefusedByNameInDataFiles) {
  const TemporaryFolder folder;
  const TemporaryFolder empty;
  std::ofstream(folder / "junk.safetensors") << "not a tensor file";
  for (const Case& row : std::vector<Case>{
           {{"--data_name=mnist", "--model=mnist_deep", "--data_dir=" + (folder / "none")},
            "none: there is no such folder or file"},
           {{"--data_name=mnist", "--model=mnist_deep", "--data_dir=" + empty.path().string()},
            "the folder is empty"},
           {{"--data_name=mnist", "--model=mnist_deep", "--data_dir=" + (folder / "")}, "idx"},
           {{"--data_name=cifar10", "--model=resnet20", "--data_dir=" + (folder / "")},
            folder.path().filename().string()},
           {{"--data_name=tensors", "--model=lenet", "--data_dir=" + (folder / "junk.safetensors")},
            "junk.safetensors"}}) {
    expect_refused(row);
  }
}

TEST(BadInput, ABatchThatCannotFitNamesTheLargestThatDoes) {
  const Finished run = run_program({"--model=resnet50", "--batch_size=100000"});
  EXPECT_EQ(run.status, 3);
  EXPECT_NE(run.err.find("GiB are free"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("the largest --batch_size that fits is"), std::string::npos) << run.err;
}

TEST(BadInput, AnUnwritableTrainDirLosesNothingAndIsNamed) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "in the way";
  expect_refused({{"--model=trivial", "--data_name=cifar10", "--batch_size=2", "--num_batches=1",
                   "--num_warmup_batches=0", "--train_dir=" + (folder / "file/t")},
                  "file/t"});
}

TEST(BadInput, TheResultFileTellsTheError) {
  const TemporaryFolder folder;
  const Finished run = run_program({"--model=resnet51", "--result_json=" + (folder / "r.json")});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(read_file(folder / "r.json").find("--model=resnet51: no such model"),
            std::string::npos);
}

}  // namespace
}  // namespace cnn::tests
