#include "bench/run/time_slicer.h"

namespace cnn::bench {

Next TimeSlicer::work(const FinishedStep& /*step*/) {
  turns_.pass();
  return Next::go_on;
}

void TimeSlicer::end(const RunEnd& /*end*/) {
  result_["turns"] = {{"passed", turns_.passed()}, {"seconds_waited", turns_.seconds_waited()}};
}

}  // namespace cnn::bench
