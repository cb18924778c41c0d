#include "bench/flags/flag_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/settings.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;

using Flags = std::vector<std::pair<std::string, std::string>>;

Config with(const Flags& flags) {
  std::vector<Setting> settings = default_settings();
  find_setting(settings, "device").value = "cpu";
  for (const auto& [name, value] : flags) {
    find_setting(settings, name).value = parse_value(*find_flag(name), value);
  }
  return config_of(settings);
}

std::string broken(const Flags& flags) {
  try {
    check_rules(with(flags));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

struct Case {
  Flags flags;
  std::string says;
};

TEST(FlagRules, RefuseContradictions) {
  const std::vector<Case> cases{
      {{{"min_time", "5"}, {"num_batches", "10"}}, "--min_time says when to stop"},
      {{{"min_time", "5"}, {"num_epochs", "1"}}, "--min_time says when to stop"},
      {{{"lms", "1"}, {"lms_policy", "tflms1"}, {"lms_lb", "20000"}}, "--lms_lb is at most"},
      {{{"lms_excl_ops", "("}}, "--lms_excl_ops: '(' is not a regular expression"},
      {{{"lms_incl_ops", "a,["}}, "--lms_incl_ops: '[' is not a regular expression"},
      {{{"lms_excl_types", "*"}}, "--lms_excl_types: '*' is not a regular expression"},
      {{{"lms_incl_types", "("}}, "--lms_incl_types: '(' is not a regular expression"},
      {{{"min_time", "5"}, {"eval", "true"}, {"train_dir", "t"}}, "--num_eval_batches"},
      {{{"min_time", "5"}, {"eval_during_training_every_n_steps", "2"}},
       "how long the training is"},
      {{{"forward_only", "1"}, {"eval", "1"}}, "--forward_only and --eval"},
      {{{"num_batches", "5"}, {"num_epochs", "1"}}, "--num_batches and --num_epochs"},
      {{{"num_eval_batches", "5"}, {"num_eval_epochs", "1"}}, "--num_eval_batches and"},
      {{{"learning_rate_decay_factor", ".5"}}, "give all three"},
      {{{"num_epochs_per_decay", "2"}, {"init_learning_rate", "1"}}, "give all three"},
      {{{"learning_rate_decay_factor", ".5"}, {"num_epochs_per_decay", "2"}}, "give all three"},
      {{{"minimum_learning_rate", ".1"}, {"init_learning_rate", "1"}}, "--minimum_learning_rate"},
      {{{"piecewise_learning_rate_schedule", "1;3;.1"}, {"init_learning_rate", "1"}},
       "whole sched"},
      {{{"piecewise_learning_rate_schedule", "1;3"}}, "LR0;E1;LR1"},
      {{{"piecewise_learning_rate_schedule", "1;x;.1"}}, "LR0;E1;LR1"},
      {{{"piecewise_learning_rate_schedule", "a;3;.1"}}, "LR0;E1;LR1"},
      {{{"piecewise_learning_rate_schedule", "1;3.5;.1"}}, "LR0;E1;LR1"},
      {{{"piecewise_learning_rate_schedule", "1;3;"}}, "LR0;E1;LR1"},
      {{{"save_model_secs", "5"}, {"save_model_steps", "5"}, {"train_dir", "d"}}, "exclude each"},
      {{{"eval", "1"}}, "--eval needs --train_dir"},
      {{{"simulate", "h200"}, {"tune", "1"}, {"plan_cache", "c"}}, "--tune times kernels"},
      {{{"comm_check", "majority"}, {"num_gpus", "3"}}, "add --variable_update=independent"},
      {{{"comm_check", "majority"}, {"variable_update", "independent"}}, "and this is one"},
      {{{"comm_check", "majority"}, {"variable_update", "independent"}, {"simulate", "h200"}},
       "--simulate runs nothing"},
      {{{"comm_fault", "rank=0,what=flip"}, {"simulate", "h200"}}, "drop --eval and --simulate"},
      {{{"simulate", "h200"}, {"data_dir", "d"}, {"data_name", "mnist"}}, "drop --data_dir"},
      {{{"simulate", "h200"}, {"benchmark_log_dir", "d"}}, "use --result_json"},
      {{{"data_name", "tensors"}}, "FILE.safetensors"},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(broken(each.flags), HasSubstr(each.says)) << each.says;
  }
}

TEST(FlagRules, RefuseContradictionsOfEvaluationDuringTraining) {
  const std::vector<Case> cases{
      {{{"eval_during_training_every_n_steps", "5"}, {"eval_during_training_every_n_epochs", "1"}},
       "at most one"},
      {{{"eval_during_training_every_n_steps", "5"}, {"eval", "1"}}, "do not work with"},
      {{{"eval_during_training_every_n_steps", "5"}, {"forward_only", "1"}}, "do not work with"},
      {{{"eval_during_training_every_n_epochs", "-1"}}, "0 or more"},
      {{{"eval_during_training_at_specified_steps", "1,2.5"}}, "whole numbers"},
      {{{"eval_during_training_at_specified_epochs", "1,b"}}, "numbers with commas"},
      {{{"stop_at_top_1_accuracy", ".5"}}, "--stop_at_top_1_accuracy needs"},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(broken(each.flags), HasSubstr(each.says)) << each.says;
  }
}

TEST(FlagRules, RefuseAFrozenRunThatSaves) {
  EXPECT_THAT(
      broken({{"forward_only", "1"}, {"freeze_when_forward_only", "1"}, {"train_dir", "d"}}),
      HasSubstr("no variables to save"));
}

TEST(FlagRules, LetSensibleCombinationsPass) {
  const std::vector<std::vector<std::pair<std::string, std::string>>> fine{
      {},
      {{"num_batches", "0"}, {"num_epochs", "2"}},  // 0 counts as unset
      {{"init_learning_rate", "1"}},
      {{"init_learning_rate", "1"},
       {"learning_rate_decay_factor", ".5"},
       {"num_epochs_per_decay", "2"},
       {"minimum_learning_rate", ".1"}},
      {{"piecewise_learning_rate_schedule", "1;3;.1;5;.01"},
       {"num_learning_rate_warmup_epochs", "2"}},
      {{"piecewise_learning_rate_schedule", "0.5"}},
      {{"eval", "1"}, {"train_dir", "d"}},
      {{"device", "cpu"}, {"data_format", "NCHW"}},
      {{"device", "gpu"}, {"tune", "1"}, {"plan_cache", "f"}},
      {{"use_fp16", "1"}, {"fp16_enable_auto_loss_scale", "1"}},
      {{"eval_during_training_at_specified_epochs", "0.5,1"}, {"stop_at_top_1_accuracy", ".5"}},
      {{"stop_at_top_1_accuracy", "0"}},  // 0 counts as unset
  };
  for (const auto& flags : fine) {
    EXPECT_EQ(broken(flags), "no error");
  }
}

TEST(FlagRules, SayWhichFlagsNeedAnother) {
  const std::vector<Case> cases{
      {{{"momentum", "0.5"}}, "--momentum acts with --optimizer=momentum only"},
      {{{"num_learning_rate_warmup_epochs", "2"}}, "acts with --init_learning_rate or"},
      {{{"resnet_base_lr", "0.5"}, {"model", "vgg16"}}, "--resnet_base_lr acts on the schedule"},
      {{{"resnet_base_lr", "0.5"}, {"model", "resnet20"}, {"data_name", "cifar10"}},
       "--resnet_base_lr acts on the schedule"},
      {{{"resnet_base_lr", "0.5"}, {"model", "resnet50"}, {"init_learning_rate", "1"}},
       "and not with --init_learning_rate"},
      {{{"resnet_base_lr", "0.5"},
        {"model", "resnet50"},
        {"piecewise_learning_rate_schedule", "1;3;.1"}},
       "and not with --init_learning_rate"},
      {{{"print_training_accuracy", "1"}, {"eval", "1"}}, "they do nothing with --eval"},
      {{{"loss_type_to_report", "base_loss"}, {"eval", "1"}}, "they do nothing with --eval"},
      {{{"display_perf_ewma", "0.5"}, {"eval", "1"}}, "they do nothing with --eval"},
      {{{"batch_group_size", "4"}, {"find_max_batch", "1"}}, "--batch_group_size groups batches"},
      {{{"batch_group_size", "4"}, {"find_max_image_size", "1"}},
       "--batch_group_size groups batches"},
      {{{"rmsprop_decay", "0.5"}, {"optimizer", "adam"}}, "act with --optimizer=rmsprop only"},
      {{{"adam_beta1", "0.5"}}, "act with --optimizer=adam only"},
      {{{"fp16_loss_scale", "8"}}, "act with --use_fp16 or --precision=fp16 only"},
      {{{"fp16_inc_loss_scale_every_n", "8"}}, "acts with --fp16_enable_auto_loss_scale only"},
      {{{"datasets_use_prefetch", "0"}}, "does not act on synthetic data"},
      {{{"ml_perf", "1"}}, "act on --data_name=imagenet with --data_dir only"},
      {{{"deterministic", "0"}}, "--nodeterministic acts on a GPU only"},
      {{{"save_model_secs", "5"}}, "without --train_dir nothing is saved"},
      {{{"save_model_steps", "5"}}, "without --train_dir nothing is saved"},
      {{{"horovod_device", "cpu"}}, "acts with --variable_update=horovod only"},
      {{{"variable_update", "horovod"}, {"horovod_device", "gpu"}}, "that is elsewhere"},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(idle_flags(with(each.flags)), testing::ElementsAre(HasSubstr(each.says)));
  }
  EXPECT_THAT(idle_flags(with({{"momentum", "0.5"}, {"optimizer", "momentum"}})),
              testing::IsEmpty());
  EXPECT_THAT(idle_flags(with({{"use_fp16", "1"}, {"fp16_loss_scale", "8"}})), testing::IsEmpty());
  EXPECT_THAT(idle_flags(with({{"resnet_base_lr", "0.5"}, {"model", "resnet50"}})),
              testing::IsEmpty());
  EXPECT_THAT(
      idle_flags(with({{"init_learning_rate", "1"}, {"num_learning_rate_warmup_epochs", "2"}})),
      testing::IsEmpty());
  EXPECT_THAT(idle_flags(with({{"piecewise_learning_rate_schedule", "1;3;.1"},
                               {"num_learning_rate_warmup_epochs", "2"}})),
              testing::IsEmpty());
  EXPECT_THAT(idle_flags(with({{"variable_update", "horovod"}, {"horovod_device", "cpu"}})),
              testing::IsEmpty());
  EXPECT_THAT(idle_flags(with({{"save_model_steps", "5"}, {"train_dir", "d"}})),
              testing::IsEmpty());
}

TEST(FlagRules, SayWhatDoesNothingWhereNoStepRuns) {
  const std::vector<std::pair<Flags, std::string>> modes{
      {{{"simulate", "h200"}}, "--simulate"},
      {{{"find_max_batch", "1"}}, "--find_max_batch"},
      {{{"find_max_image_size", "1"}}, "--find_max_image_size"},
      {{{"lms", "1"}, {"lms_simulate_only", "1"}}, "--lms_simulate_only"},
      {{{"data_name", "mnist"}, {"data_dir", "d"}, {"input_only", "1"}}, "--input_only"},
  };
  const Flags of_steps{
      {"steps_csv", "f"},
      {"tfprof_file", "f"},
      {"hash_file", "f"},
      {"history", "f"},
      {"take_turns", "f"},
      {"train_dir", "d"},
      {"eval_dir", "d"},
      {"check_finite_step", "1"},
      {"lms_stats", "1"},
      {"lms_stats_average", "1"},
      {"lms_verify", "1"},
      {"save_model_steps", "1"},
      {"max_ckpts_to_keep", "2"},
      {"summary_verbosity", "1"},
      {"save_summaries_steps", "1"},
      {"display_perf_ewma", "0.5"},
      {"comm_dump_iter", "1"},
      {"comm_fault", "rank=0,what=flip"},
      {"measure_ceilings", "0"},
  };
  for (const auto& [mode, name] : modes) {
    for (const auto& flag : of_steps) {
      Flags all = mode;
      all.push_back(flag);
      EXPECT_THAT(idle_flags(with(all)),
                  testing::Contains(name + " runs no step: --" + flag.first + " does nothing"));
    }
    Flags all = mode;
    all.emplace_back("steps_csv", "f");
    all.emplace_back("history", "g");
    EXPECT_THAT(idle_flags(with(all)),
                testing::Contains(name + " runs no step: --history, --steps_csv do nothing"));
    all = mode;
    all.emplace_back("num_batches", "3");
    EXPECT_THAT(idle_flags(with(all)).empty(), name == "--input_only");
  }
}

// The memory of the evaluation is a part of what is simulated or searched.
TEST(FlagRules, CountEvaluationsDuringTrainingAmongPlans) {
  const std::string idle = "--input_only runs no step: --eval_during_training_... does nothing";
  for (const auto& [flag, value] : Flags{{"eval_during_training_every_n_steps", "1"},
                                         {"eval_during_training_every_n_epochs", "1"},
                                         {"eval_during_training_at_specified_steps", "1,5"},
                                         {"eval_during_training_at_specified_epochs", "1,5"}}) {
    EXPECT_THAT(
        idle_flags(
            with({{"data_name", "mnist"}, {"data_dir", "d"}, {"input_only", "1"}, {flag, value}})),
        testing::Contains(idle));
    EXPECT_THAT(idle_flags(with({{"simulate", "h200"}, {flag, value}})), testing::IsEmpty());
    EXPECT_THAT(idle_flags(with({{"find_max_batch", "1"}, {flag, value}})), testing::IsEmpty());
  }
}

TEST(FlagRules, DropTheFilesOfStepsWhereNoStepRuns) {
  const std::vector<std::string> of_steps{"benchmark_log_dir", "tfprof_file", "steps_csv",
                                          "hash_file",         "history",     "take_turns",
                                          "train_dir"};
  Flags flags{{"result_json", "r"},
              {"html_report", "h"},
              {"trace_file", "t"},
              {"eval_during_training_every_n_steps", "2"}};
  for (const std::string& name : of_steps) {
    flags.emplace_back(name, "f");
  }
  const auto value_of = [](const Config& config, const std::string& name) {
    return find_flag(name)->member->load(config);
  };
  Config with_steps = with(flags);
  drop_files_of_steps(with_steps);
  flags.emplace_back("find_max_batch", "1");
  Config without = with(flags);
  drop_files_of_steps(without);
  for (const std::string& name : of_steps) {
    EXPECT_EQ(value_of(with_steps, name), Plain(std::string("f"))) << name;
    EXPECT_EQ(value_of(without, name), Plain()) << name;
  }
  EXPECT_EQ(value_of(without, "result_json"), Plain(std::string("r")));
  EXPECT_EQ(value_of(without, "html_report"), Plain(std::string("h")));
  EXPECT_EQ(value_of(without, "trace_file"), Plain(std::string("t")));
  EXPECT_EQ(value_of(without, "eval_during_training_every_n_steps"), Plain(std::int64_t{2}))
      << "a search counts the memory of the evaluation";
}

TEST(FlagRules, SayWhereNoPlanIsShown) {
  for (const Flags& mode :
       {Flags{{"find_max_batch", "1"}, {"lms", "1"}},
        Flags{{"data_name", "mnist"}, {"data_dir", "d"}, {"input_only", "1"}}}) {
    for (const char* const flag : {"print_plan", "graph_file", "trace_file"}) {
      Flags all = mode;
      all.emplace_back(flag, "1");
      EXPECT_THAT(idle_flags(with(all)), testing::Contains(HasSubstr(flag))) << flag;
    }
  }
  EXPECT_THAT(idle_flags(with({{"find_max_batch", "1"}, {"lms", "1"}, {"lms_trace", "f"}})),
              testing::ElementsAre(HasSubstr("--lms_trace and --lms_debug do nothing")));
  EXPECT_THAT(idle_flags(with(
                  {{"data_name", "mnist"}, {"data_dir", "d"}, {"input_only", "1"}, {"lms", "1"}})),
              testing::ElementsAre(HasSubstr("--input_only computes nothing")));
  EXPECT_THAT(idle_flags(with({{"lms", "1"}, {"lms_simulate_only", "1"}, {"trace_file", "f"}})),
              testing::ElementsAre(HasSubstr("--lms_trace with --lms_simulate_only")));
  EXPECT_THAT(idle_flags(with({{"simulate", "h200"}, {"trace_file", "f"}})), testing::IsEmpty());
}

TEST(FlagRules, SayWhatOnlyTrainingUses) {
  for (const char* const mode : {"eval", "forward_only"}) {
    EXPECT_THAT(idle_flags(with({{mode, "1"}, {"train_dir", "d"}, {"lms", "1"}})),
                testing::ElementsAre(HasSubstr("run as without it")));
    EXPECT_THAT(idle_flags(with(
                    {{mode, "1"}, {"train_dir", "d"}, {"num_gpus", "2"}, {"comm_algo", "ring"}})),
                testing::Contains(HasSubstr("the flags of the exchange have no effect")));
  }
  EXPECT_THAT(idle_flags(with({{"eval", "1"}, {"train_dir", "d"}, {"tfprof_file", "f"}})),
              testing::ElementsAre(HasSubstr("--tfprof_file profiles steps of training")));
  EXPECT_THAT(idle_flags(with({{"eval_dir", "d"}, {"max_ckpts_to_keep", "2"}})),
              testing::ElementsAre("--max_ckpts_to_keep acts with --train_dir only",
                                   "--eval_dir acts only if the run evaluates"));
}

TEST(FlagRules, SayWhereTuningDoesNotAct) {
  const std::string line = "--tune_seconds and --plan_cache act on a CPU with --tune only";
  EXPECT_THAT(idle_flags(with({{"plan_cache", "f"}})), testing::ElementsAre(line));
  EXPECT_THAT(idle_flags(with({{"tune_seconds", "5"}})), testing::ElementsAre(line));
  EXPECT_THAT(idle_flags(with({{"tune", "0"}, {"plan_cache", "f"}})), testing::ElementsAre(line));
  EXPECT_THAT(idle_flags(with({{"tune", "1"}, {"plan_cache", "f"}, {"tune_seconds", "5"}})),
              testing::IsEmpty());
  EXPECT_THAT(idle_flags(with({{"device", "gpu"}, {"tune", "0"}, {"plan_cache", "f"}})),
              testing::IsEmpty());
  EXPECT_THAT(idle_flags(with({{"tune", "1"}, {"find_max_batch", "1"}})),
              testing::Contains(HasSubstr("--tune does not act with --find_max_batch")));
}

TEST(FlagRules, SayThatNothingChoosesBesideAPlanOfAFile) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"lms_policy", "vdnn_all"},
                                                        {"lms_n_tensors", "3"},
                                                        {"lms_recompute", "off"},
                                                        {"lms_sync_mode", "3"},
                                                        {"lms_size_threshold", "64"},
                                                        {"lms_variables", "off"},
                                                        {"lms_excl_types", "conv"},
                                                        {"lms_frac", "0.5"},
                                                        {"lms_lb", "2"},
                                                        {"lms_swapin_ahead", "2"}}) {
    EXPECT_THAT(idle_flags(with({{"lms", "1"}, {"lms_plan_file", "p"}, {name, value}})),
                testing::ElementsAre(HasSubstr("do nothing beside --lms_plan_file")))
        << name;
  }
  EXPECT_THAT(idle_flags(with({{"lms", "1"}, {"lms_plan_file", "p"}, {"lms_limit", "9"}})),
              testing::IsEmpty());
}

}  // namespace
}  // namespace cnn::bench
