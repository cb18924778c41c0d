#include <algorithm>
#include <omp.h>

#include "layers/cpu/parallel.h"

namespace cnn::layers::cpu {

int team_size() { return omp_get_max_threads(); }

void run_pieces(std::int64_t count, std::int64_t grain, Piece piece, const void* body) {
  const std::int64_t most = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, grain));
  const int pieces = static_cast<int>(std::min<std::int64_t>(most, team_size()));
  if (pieces == 1) {
    piece(body, 0, count);
    return;
  }
  // Uses the whole team, even if some threads have no work: libgomp ends the threads that a smaller
  // team omits, and starts new, unpinned ones for the next larger team.
#pragma omp parallel
  for (int i = omp_get_thread_num(); i < pieces; i += omp_get_num_threads()) {
    piece(body, count * i / pieces, count * (i + 1) / pieces);
  }
}

}  // namespace cnn::layers::cpu
