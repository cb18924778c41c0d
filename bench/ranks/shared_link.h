#pragma once

#include "bench/flags/config.h"

namespace cnn::bench {

class Peers;

// Returns the flags by which a rank makes its backend: the ranks of one machine divide the rates of
// the link that --emulate_link_gbps describes, so that each plans with its share and copies at it.
// peers: the other processes of the run; null: there are none.
Config with_shared_link(Config config, const Peers* peers);

}  // namespace cnn::bench
