#include <set>

#include "bench/flags/conditions.h"
#include "bench/flags/flag_table.h"
#include "models/catalog.h"

namespace cnn::bench {

namespace {

using enum FlagSupport;
using enum Type;

constexpr NoEffectRule no_steps{
    plans_only, "no step is run: flags for the number of steps and their display do nothing"};
constexpr NoEffectRule no_graph{makes_no_plan,
                                "--graph_file shows the step of a network, and none is planned"};
constexpr NoEffectRule no_step_lines{
    [](const Config& c) { return c.mode.eval; },
    "--print_training_accuracy, --loss_type_to_report and --display_perf_ewma are about the step "
    "lines of training and --forward_only: they do nothing with --eval"};
constexpr NoEffectRule no_evaluation{
    [](const Config& c) { return !evaluates(c); },
    "--eval_batch_size, --num_eval_batches and --num_eval_epochs act only if the run evaluates"};

// A plan without steps counts the memory of the evaluation.
constexpr NoEffectRule evaluation_of_files{
    [](const Config& c) { return c.data.input_only; },
    "--input_only runs no step: --eval_during_training_... does nothing"};

constexpr NoEffectRule no_summary_folder{
    [](const Config& c) { return c.mode.eval || !c.checkpoint.train_dir; },
    "--summary_verbosity and --save_summaries_steps write event files of training or "
    "--forward_only to --train_dir"};

bool too_little_warm_up(const Config& c) {
  return runs_no_step_for(c).empty() &&
         (c.mode.eval || warm_up_batches(c.size.warm_up_batches, c.size.autotune_threshold) < 2);
}

bool traces_nothing(const Config& c) { return !simulates(c) && !runs_no_step_for(c).empty(); }

std::vector<std::string> model_names() {
  std::set<std::string> names;
  for (const models::Model& model : models::all()) {
    names.emplace(model.name);
  }
  return {names.begin(), names.end()};
}

constexpr Flag mode_rows[] = {
    {.name = "model",
     .help = "network to build; --list_models shows those of each data set",
     .member = &at<&Config::model, &ModelOptions::name>,
     .known = model_names},
    {.name = "eval",
     .help = "evaluate the newest checkpoint of --train_dir; no training",
     .member = &at<&Config::mode, &ModeOptions::eval>},
    {.name = "forward_only",
     .help = "time inference only: no loss, no gradients, no update",
     .member = &at<&Config::mode, &ModeOptions::forward_only>},
    {.name = "freeze_when_forward_only",
     .help = "with --forward_only, save no variables; in any case weights are folded and packed "
             "once, before timing",
     .member = &at<&Config::mode, &ModeOptions::freeze_when_forward_only>,
     .no_effect = {{[](const Config& c) { return !c.mode.forward_only; },
                    "--freeze_when_forward_only acts with --forward_only only"}}},
};

constexpr Flag size_rows[] = {
    {.name = "batch_size",
     .help = "examples per device and step; 0 or less takes the model's own size",
     .member = &at<&Config::size, &SizeOptions::batch>},
    {.name = "num_batches",
     .help = "timed steps after warm-up; 100 if neither this nor --num_epochs is set",
     .range = at_least(0),
     .member = &at<&Config::size, &SizeOptions::length, &LengthFlags::batches>,
     .no_effect = {no_steps}},
    {.name = "num_epochs",
     .help = "timed length in passes over the data instead of --num_batches",
     .range = at_least(0),
     .member = &at<&Config::size, &SizeOptions::length, &LengthFlags::epochs>,
     .no_effect = {no_steps}},
    {.name = "min_time",
     .help =
         "run until that many seconds of timed steps have passed, instead of --num_batches; all "
         "ranks stop at the same step",
     .range = between(0, 1e9),
     .member = &at<&Config::size, &SizeOptions::min_time>,
     .no_effect = {no_steps}},
    {.name = "num_warmup_batches",
     .help = "untimed training steps first; unset means max(10, 5 * autotune_threshold^2)",
     .range = at_least(0),
     .member = &at<&Config::size, &SizeOptions::warm_up_batches>,
     .no_effect = {no_steps}},
};

constexpr Flag eval_rows[] = {
    {.name = "eval_interval_secs",
     .help = "with --eval: evaluate again every so many seconds, for ever; 0 = once",
     .member = &at<&Config::eval, &EvalOptions::interval_secs>,
     .no_effect = {{[](const Config& c) { return !c.mode.eval; },
                    "--eval_interval_secs acts with --eval only"}},
     .needs_steps = true},
    {.name = "eval_during_training_every_n_steps",
     .help = "evaluate in the middle of training whenever this many steps have passed",
     .range = at_least(1),
     .member = &at<&Config::eval, &EvalOptions::every_n_steps>,
     .no_effect = {evaluation_of_files}},
    {.name = "eval_during_training_every_n_epochs",
     .help = "the same with the interval in epochs",
     .range = at_least(0),
     .member = &at<&Config::eval, &EvalOptions::every_n_epochs>,
     .no_effect = {evaluation_of_files}},
    {.name = "eval_during_training_at_specified_steps",
     .help = "evaluate in the middle of training after these steps, such as 100,500",
     .member = &at<&Config::eval, &EvalOptions::at_steps>,
     .no_effect = {evaluation_of_files}},
    {.name = "eval_during_training_at_specified_epochs",
     .help = "evaluate in the middle of training after these epochs, such as 0.5,1",
     .member = &at<&Config::eval, &EvalOptions::at_epochs>,
     .no_effect = {evaluation_of_files}},
    {.name = "eval_batch_size",
     .help = "examples per device and evaluation step; 0 or less = as in training",
     .member = &at<&Config::eval, &EvalOptions::batch>,
     .no_effect = {no_evaluation}},
    {.name = "num_eval_batches",
     .help = "evaluation steps; without it and --num_eval_epochs as long as the training",
     .range = at_least(0),
     .member = &at<&Config::eval, &EvalOptions::length, &LengthFlags::batches>,
     .no_effect = {no_evaluation, no_steps}},
    {.name = "num_eval_epochs",
     .help = "evaluation length in passes over the validation data",
     .range = at_least(0),
     .member = &at<&Config::eval, &EvalOptions::length, &LengthFlags::epochs>,
     .no_effect = {no_evaluation, no_steps}},
    {.name = "stop_at_top_1_accuracy",
     .help = "end training as soon as an evaluation on the way reaches this accuracy",
     .member = &at<&Config::eval, &EvalOptions::stop_at_top_1_accuracy>,
     .needs_steps = true},
    {"collect_eval_results_async", boolean, "False", rejected,
     "there is no SSD300 here; leave it out, evaluation results are always complete",
     "post-process SSD300 detections in the background"},
};

constexpr Flag report_rows[] = {
    {.name = "print_training_accuracy",
     .help = "add top-1 and top-5 accuracy of the batch to each step line",
     .member = &at<&Config::report, &ReportOptions::training_accuracy>,
     .no_effect = {no_step_lines}},
    {.name = "display_every",
     .help = "print a step line at step 1 and at every multiple of this",
     .range = at_least(1),
     .member = &at<&Config::report, &ReportOptions::display_every>,
     .no_effect = {no_steps}},
    {.name = "display_perf_ewma",
     .help = "weight of the newest step in an exponential mean of step times; 0 = plain mean",
     .range = between(0, 1),
     .member = &at<&Config::report, &ReportOptions::perf_ewma>,
     .no_effect = {no_step_lines},
     .needs_steps = true},
    {.name = "loss_type_to_report",
     .help = "printed loss with (total_loss) or without (base_loss) the weight decay term",
     .member = &at<&Config::report, &ReportOptions::loss_type>,
     .no_effect = {no_step_lines}},
    {.name = "summary_verbosity",
     .help = "TensorBoard event files in --train_dir: 0 none; 1 losses, rate, accuracies, speed, "
             "input wait, memory and the graph; 2 also a histogram of all gradients; 3 also one of "
             "each gradient and each variable, and input images",
     .range = between(0, 3),
     .member = &at<&Config::report, &ReportOptions::summaries, &SummaryOptions::verbosity>,
     .no_effect = {no_summary_folder,
                   {[](const Config& c) { return c.report.summaries.every == 0; },
                    "--summary_verbosity writes nothing without --save_summaries_steps"}},
     .needs_steps = true},
    {.name = "save_summaries_steps",
     .help = "write a TensorBoard summary every so many steps; 0 = none",
     .range = at_least(0),
     .member = &at<&Config::report, &ReportOptions::summaries, &SummaryOptions::every>,
     .no_effect = {no_summary_folder,
                   {[](const Config& c) { return c.report.summaries.verbosity == 0; },
                    "--save_summaries_steps writes nothing without --summary_verbosity=1, 2 or 3"}},
     .needs_steps = true},
    {.name = "history",
     .help =
         "append this run to a file of results, as one line of JSON; cnn_compare --history=FILE "
         "says at which commit the speed changed",
     .member = &at<&Config::report, &ReportOptions::history>,
     .no_effect =
         {{[](const Config& c) { return c.mode.eval; },
           "--history has speeds of training or --forward_only; it does not act with --eval"}},
     .needs_steps = true},
    {.name = "benchmark_log_dir",
     .help = "folder for benchmark_run.log and metric.log",
     .member = &at<&Config::report, &ReportOptions::log_dir>,
     .needs_steps = true},
    {.name = "benchmark_test_id",
     .help = "text stored as test_id in benchmark_run.log",
     .member = &at<&Config::report, &ReportOptions::test_id>,
     .no_effect = {{[](const Config& c) { return !c.report.log_dir; },
                    "--benchmark_test_id acts with --benchmark_log_dir only"}},
     .needs_steps = true},
    {"ml_perf_compliance_logging", boolean, "False", accepted,
     "no MLPerf 0.5 log lines are printed; --result_json and --benchmark_log_dir record the run",
     "print MLPerf 0.5 log lines"},
};

constexpr NoEffectRule without_train_dir{
    [](const Config& c) { return !c.checkpoint.train_dir; },
    "--save_model_secs and --save_model_steps have no effect: without "
    "--train_dir nothing is saved"};

constexpr Flag checkpoint_rows[] = {
    {.name = "train_dir",
     .help = "folder of checkpoints: training resumes from its newest and saves at the end",
     .member = &at<&Config::checkpoint, &CheckpointOptions::train_dir>,
     .needs_steps = true},
    {.name = "save_model_secs",
     .help = "seconds between checkpoints; 0 = none on the way",
     .range = at_least(0),
     .member = &at<&Config::checkpoint, &CheckpointOptions::save_secs>,
     .no_effect = {without_train_dir},
     .needs_steps = true},
    {.name = "save_model_steps",
     .help = "timed steps between checkpoints; 0 = none on the way",
     .range = at_least(0),
     .member = &at<&Config::checkpoint, &CheckpointOptions::save_steps>,
     .no_effect = {without_train_dir},
     .needs_steps = true},
    {.name = "max_ckpts_to_keep",
     .help = "how many of the newest checkpoints stay, and the newest of finite weights in any "
             "case; 0 = all",
     .range = at_least(0),
     .member = &at<&Config::checkpoint, &CheckpointOptions::max_to_keep>,
     .no_effect = {{[](const Config& c) { return !c.checkpoint.train_dir; },
                    "--max_ckpts_to_keep acts with --train_dir only"}},
     .needs_steps = true},
    {.name = "eval_dir",
     .help = "folder for TensorBoard event files of --eval, and of evaluations during training "
             "where --summary_verbosity asks for summaries",
     .member = &at<&Config::report, &ReportOptions::summaries, &SummaryOptions::eval_dir>,
     .no_effect = {{[](const Config& c) { return !evaluates(c); },
                    "--eval_dir acts only if the run evaluates"}},
     .needs_steps = true},
    {"backbone_model_path", text, "None", rejected,
     "there is no SSD300 here; use --train_dir to start from a checkpoint",
     "pre-trained backbone of SSD300"},
};

constexpr Flag profile_rows[] = {
    {.name = "trace_file",
     .help = "write a Chrome trace of the last but one warm-up step to this file, of all ranks",
     .member = &at<&Config::report, &ReportOptions::trace_file>,
     .no_effect =
         {{too_little_warm_up,
           "--trace_file traces the last but one warm-up step and this run has none: no trace"},
          {traces_nothing,
           "--trace_file traces a step, and none runs; --lms_trace with --lms_simulate_only, and "
           "--trace_file with --simulate show the planned one"}}},
    {"use_chrome_trace_format", boolean, "True", rejected,
     "StepStats text exists in TensorFlow only; keep the Chrome JSON of --trace_file",
     "form of the trace: Chrome JSON"},
    {.name = "tfprof_file",
     .help = "profile the first ten timed steps and write a table of all operations to this file: "
             "count, time, share, FLOP/s, bytes/s, per cent of their roofline",
     .member = &at<&Config::report, &ReportOptions::tfprof_file>,
     .no_effect = {{[](const Config& c) { return c.mode.eval; },
                    "--tfprof_file profiles steps of training or --forward_only; it does not act "
                    "with --eval"}},
     .needs_steps = true},
    {.name = "graph_file",
     .help = "write the graph of the step to this file, in the DOT language of Graphviz",
     .member = &at<&Config::report, &ReportOptions::graph_file>,
     .no_effect = {no_graph}},
    {.name = "hash_file",
     .help = "write a hash of every tensor that a step writes to this file, of the first rank; "
             "cnn_compare --bits names the first tensor that differs between two such files",
     .member = &at<&Config::report, &ReportOptions::hash_file>,
     .no_effect =
         {{[](const Config& c) { return mode_of(c) == Mode::evaluation; },
           "--hash_file has steps of training or --forward_only; it does not act with --eval"}},
     .needs_steps = true},
    {.name = "hash_steps",
     .help = "hash every so many steps, with --hash_file and --comm_check=majority: those whose "
             "number since the start of the training, warm-up included, it divides",
     .range = at_least(1),
     .member = &at<&Config::report, &ReportOptions::hash_steps>,
     .no_effect = {{[](const Config& c) { return !c.report.hash_file && !repeats_on_all_ranks(c); },
                    "--hash_steps acts with --hash_file and --comm_check=majority only"}},
     .needs_steps = true},
    {.name = "check_finite_step",
     .help = "look at every tensor of this one step of training, by its global number, as it is "
             "written, and name the first that has NaN or infinity; a run whose loss is not finite "
             "says which step that was",
     .range = at_least(1),
     .member = &at<&Config::report, &ReportOptions::check_finite_step>,
     .no_effect = {{[](const Config& c) {
                      return mode_of(c) == Mode::evaluation || mode_of(c) == Mode::forward_only;
                    },
                    "--check_finite_step is for steps of training"}},
     .needs_steps = true},
    {"partitioned_graph_file_prefix", text, "None", rejected,
     "the graph is not partitioned here; use --print_plan", "write TensorFlow's per-device graphs"},
    {"debugger", text, "None", rejected,
     "there is no TensorFlow here; use --trace_file or --print_plan",
     "attach TensorFlow's debugger"},
};

}  // namespace

std::vector<FlagGroup> run_flags() {
  return {{"mode", "What to run", mode_rows},
          {"size", "How much to run", size_rows},
          {"eval", "Evaluation", eval_rows},
          {"report", "Reports", report_rows},
          {"checkpoint", "Checkpoints", checkpoint_rows},
          {"profile", "Profiles", profile_rows}};
}

}  // namespace cnn::bench
