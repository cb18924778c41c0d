#pragma once

#include <cstdint>

// Loops over the OpenMP team of the calling thread, which oneDNN uses too.
// layers/cpu/alternatives/parallel_openmp.cpp implements them; under ThreadSanitizer, which reports
// libgomp's barriers as races, layers/cpu/alternatives/parallel_serial.cpp does.
namespace cnn::layers::cpu {

using Piece = void (*)(const void* body, std::int64_t first, std::int64_t last);
void run_pieces(std::int64_t count, std::int64_t grain, Piece piece, const void* body);

// Calls body(first, last) for consecutive ranges that cover [0, count), at most one per thread and
// each of at least `grain` items unless there is only one. The ranges depend only on count, grain
// and the number of threads. body must not throw.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  run_pieces(
      count, grain,
      [](const void* b, std::int64_t first, std::int64_t last) {
        (*static_cast<const Body*>(b))(first, last);
      },
      &body);
}

int team_size();

// Below this many elements a second thread costs more than it gains: some microseconds of work.
inline constexpr std::int64_t elements_per_thread = 32768;

}  // namespace cnn::layers::cpu
