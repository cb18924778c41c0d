#include "bench/run/turn_taker.h"

namespace cnn::bench {

Next TurnTaker::work(const FinishedStep& /*step*/) {
  turns_.pass();
  return Next::go_on;
}

void TurnTaker::end(const RunEnd& /*end*/) {
  result_["turns"] = {{"passed", turns_.passed()}, {"seconds_waited", turns_.seconds_waited()}};
}

}  // namespace cnn::bench
