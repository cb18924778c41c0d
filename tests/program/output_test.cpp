#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

Words run_with(const Words& more) {
  Words flags{"--device=cpu",      "--data_name=cifar10",    "--model=trivial", "--batch_size=2",
              "--display_every=1", "--num_warmup_batches=0", "--num_batches=3"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

nlohmann::json parsed(const std::string& path) { return nlohmann::json::parse(read_file(path)); }

TEST(Output, ALineOfStdoutThatIsLostIsAnErrorAndTheResultIsWritten) {
  const TemporaryFolder folder;
  const std::string file = folder / "r.json";
  for (const char* where : {"> /dev/full", ">&-", "| true"}) {
    const Finished run = run_in_shell(run_with({"--result_json=" + file}), where);
    EXPECT_EQ(run.status, 1) << where << ": " << run.err;
    EXPECT_NE(run.err.find("stdout: a line could not be written: "), std::string::npos)
        << where << ": " << run.err;
    EXPECT_NE(parsed(file)["error"].get<std::string>().find("stdout: "), std::string::npos);
    std::filesystem::remove(file);
  }
}

TEST(Output, AClosedOrFullStderrHarmsNothing) {
  for (const char* where : {"2> /dev/full", "2>&-"}) {
    const Finished run = run_in_shell(run_with({}), where);
    EXPECT_EQ(run.status, 0) << where;
    EXPECT_EQ(run.step_lines().size(), 3U) << where;
  }
}

TEST(Output, HelpThatCannotBePrintedAbortsNothing) {
  const Finished run = run_in_shell({"--help"}, "> /dev/full");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("stdout: "), std::string::npos) << run.err;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Output, AResultThatCannotBeWrittenIsOneLineAndThePageIsWritten) {
  for (const char* const path : {"/dev/full", "/no/such/folder/r.json"}) {
    const TemporaryFolder folder;
    const std::string page = folder / "r.html";
    const Finished run =
        run_program(run_with({"--result_json=" + std::string(path), "--html_report=" + page}));
    EXPECT_EQ(run.status, 1) << path;
    EXPECT_EQ(count_of(run.err, "cannot write it"), 1U) << path << ": " << run.err;
    if (std::string(path) == "/dev/full") {  // it can be opened but takes no byte
      EXPECT_NE(read_file(page).find("--result_json=/dev/full"), std::string::npos);
    }
  }
}

TEST(Output, AResultThroughALinkIsWrittenWhereItLeads) {
  const TemporaryFolder folder;
  folder.write("real.json", "{}");
  std::filesystem::create_symlink("real.json", folder / "link.json");
  ASSERT_EQ(run_program(run_with({"--result_json=" + (folder / "link.json")})).status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.json"));
  EXPECT_EQ(parsed(folder / "real.json")["steps"].size(), 3U);
  EXPECT_FALSE(parsed(folder / "real.json")["summary"]["percent_of_roofline"].is_null());
}

TEST(Output, APipeGetsTheResultOnceBeforeTheDeviceIsMeasured) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Finished run =
      run_in_shell(run_with({"--result_json=" + pipe}), "& cat " + pipe + " >&2; wait");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  const std::size_t begin = run.err.find("{\n");
  ASSERT_NE(begin, std::string::npos) << run.err;
  const std::size_t end = run.err.rfind("}\n");
  const std::string text = run.err.substr(begin, end + 1 - begin);
  // The speed line may come before or after the object, but there must be only one object.
  const auto json = nlohmann::json::parse(text.substr(0, text.find("\n}") + 2));
  EXPECT_TRUE(json["summary"]["percent_of_roofline"].is_null());
  EXPECT_EQ(json["steps"].size(), 3U);
  EXPECT_EQ(run.err.find("\n}", begin + text.find("\n}") + 2), std::string::npos);
}

TEST(Output, StdoutMayTakeTheResultAndStaysWhatItIs) {
  const Finished run = run_program(run_with({"--result_json=/dev/stdout"}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(std::filesystem::is_symlink("/dev/stdout"));
  EXPECT_EQ(run.step_lines().size(), 3U) << "the printed lines are still there";
  const auto json = nlohmann::json::parse(run.out.substr(run.out.find("{\n")));
  EXPECT_EQ(json["steps"].size(), 3U);
}

TEST(Output, FilesThatCannotBeWrittenAreToldBeforeTheFirstStep) {
  const TemporaryFolder folder;
  folder.write("file", "");
  for (const char* flag : {"--result_json=", "--trace_file=", "--benchmark_log_dir="}) {
    const Finished run = run_program(run_with({flag + (folder / "file/x")}));
    EXPECT_EQ(run.status, 1) << flag;
    EXPECT_NE(run.err.find(flag + (folder / "file/x")), std::string::npos) << run.err;
    EXPECT_TRUE(run.step_lines().empty()) << flag;
    EXPECT_EQ(run.out.find("Running warm up"), std::string::npos) << flag;
  }
}

TEST(Output, ATrainingThatGoesToInfinityIsToldWithItsStep) {
  const TemporaryFolder folder;
  const Finished run = run_program(run_with({"--init_learning_rate=1e30", "--nomeasure_ceilings",
                                             "--result_json=" + (folder / "r.json")}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("the training diverged: the loss is "), std::string::npos) << run.err;
  const auto diverged = parsed(folder / "r.json")["diverged"];
  EXPECT_GE(diverged["step"], 2);
  EXPECT_NE(run.err.find("since step " + diverged["step"].dump() + " "), std::string::npos);
}

// The process once ended by SIGXFSZ without any message.
TEST(Output, AFileThatMayNotGrowIsNamedWithItsLimit) {
  const TemporaryFolder folder;
  const std::string train_dir = folder / "t";
  const Finished run = run_and(
      {"/bin/sh", "-c", "ulimit -f 100; exec \"$@\"", "sh", CNN_PROGRAM, "--device=cpu",
       "--model=alexnet", "--data_name=cifar10", "--batch_size=2", "--num_batches=1",
       "--num_warmup_batches=0", "--train_dir=" + train_dir},
      [](const Finished&) { return false; }, [] {});
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_NE(run.err.find(train_dir + "/model.ckpt-1.safetensors.tmp: File too large"),
            std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("ulimit -f"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace cnn::tests
