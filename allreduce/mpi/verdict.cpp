#include "allreduce/mpi/verdict.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

namespace cnn::allreduce {

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
std::optional<Verdict> Verdicts::take_one() {
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
  const Verdict verdict = Verdict::read(text);
  relay_.heard(status.MPI_SOURCE, verdict.origin);
  return verdict;
}

// All are taken before any is passed on: who has sent one need not be told.
std::optional<Verdict> Verdicts::take() {
  std::vector<Verdict> all;
  while (std::optional<Verdict> verdict = take_one()) {
    all.push_back(*std::move(verdict));
  }
  for (const Verdict& verdict : all) {
    pass_on(verdict);
  }
  if (all.empty()) {
    return std::nullopt;
  }
  const auto of_first = std::ranges::find(all, 0, &Verdict::origin);
  return of_first == all.end() ? all.front() : *of_first;
}

void Verdicts::pass_on(const Verdict& verdict) {
  const std::string& text = texts_.emplace_back(verdict.text());
  for (const int to : relay_.to_tell(verdict.origin, verdict.culprit)) {
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, verdict_tag, comm_,
              &sends_.emplace_back(MPI_REQUEST_NULL));
  }
}

void Verdicts::tell(const Verdict& own) {
  pass_on(own);
  if (own.culprit >= 0 && own.culprit != own.origin) {
    MPI_Request not_waited_for = MPI_REQUEST_NULL;
    const std::string& text = texts_.back();
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, own.culprit, verdict_tag, comm_,
              &not_waited_for);
  }
}

void Verdicts::wait_until_sent(std::chrono::milliseconds most) {
  const auto start = std::chrono::steady_clock::now();
  int all_sent = 0;
  while (all_sent == 0 && std::chrono::steady_clock::now() - start < most) {
    MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &all_sent, MPI_STATUSES_IGNORE);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace cnn::allreduce
