#pragma once

#include <cstdint>

#include "bench/report/console.h"
#include "bench/report/result_json.h"

namespace cnn::bench {

struct Job;
class Session;

// One evaluation with the variables as they are: prints a line every --display_every steps and the
// accuracy, and returns its row of the result file.
ResultEvaluation evaluate(const Job& job, Session& session, Console& console,
                          std::int64_t global_step);

// Mode --eval: loads the newest checkpoint of --train_dir and evaluates it, again and again with
// --eval_interval_secs. The session must be allocated.
void run_evaluation(const Job& job, Session& session, Console& console, ResultRecord& record);

}  // namespace cnn::bench
