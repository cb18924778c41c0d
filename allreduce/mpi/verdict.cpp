#include "allreduce/mpi/verdict.h"

#include <cstddef>
#include <iterator>
#include <sstream>
#include <thread>

namespace cnn::allreduce {
namespace {

constexpr int verdict_tag = 2;

}  // namespace

std::string Verdict::text() const {
  return std::to_string(origin) + " " + std::to_string(culprit) + " " + why;
}

Verdict Verdict::read(const std::string& text) {
  Verdict verdict;
  std::istringstream stream(text);
  stream >> verdict.origin >> verdict.culprit;
  stream.get();  // the blank
  verdict.why.assign(std::istreambuf_iterator<char>(stream), {});
  return verdict;
}

// Errors of MPI are no news where a rank is lost.
std::optional<Verdict> Verdicts::take() {
  int here = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, verdict_tag, comm_, &here, &status) != MPI_SUCCESS || here == 0) {
    return std::nullopt;
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_CHAR, &bytes);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  if (MPI_Recv(text.data(), bytes, MPI_CHAR, status.MPI_SOURCE, verdict_tag, comm_,
               MPI_STATUS_IGNORE) != MPI_SUCCESS) {
    return std::nullopt;
  }
  return Verdict::read(text);
}

void Verdicts::tell(const Verdict& own, std::chrono::milliseconds most) {
  text_ = own.text();
  for (int to = 0; to < ranks_; ++to) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (to == rank_) {
      continue;
    }
    MPI_Isend(text_.data(), static_cast<int>(text_.size()), MPI_CHAR, to, verdict_tag, comm_,
              &request);
    if (to != own.culprit) {
      sends_.push_back(request);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  int all_sent = 0;
  while (all_sent == 0 && std::chrono::steady_clock::now() - start < most) {
    MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &all_sent, MPI_STATUSES_IGNORE);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace cnn::allreduce
