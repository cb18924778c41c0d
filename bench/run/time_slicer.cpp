#include "bench/run/time_slicer.h"

namespace cnn::bench {

Next TimeSlicer::work(const FinishedStep& /*step*/) {
  slices_.pass();
  return Next::go_on;
}

void TimeSlicer::end(const RunEnd& /*end*/) {
  result_["turns"] = {{"passed", slices_.passed()}, {"seconds_waited", slices_.seconds_waited()}};
}

}  // namespace cnn::bench
