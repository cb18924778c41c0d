#include "allreduce/mpi/verdict.h"

#include <cstddef>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

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
bool VerdictFlood::take() {
  int here = 0;
  MPI_Status status;
  if (verdict_ || MPI_Iprobe(MPI_ANY_SOURCE, verdict_tag, comm_, &here, &status) != MPI_SUCCESS ||
      here == 0) {
    return verdict_.has_value();
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_CHAR, &bytes);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  if (MPI_Recv(text.data(), bytes, MPI_CHAR, status.MPI_SOURCE, verdict_tag, comm_,
               MPI_STATUS_IGNORE) != MPI_SUCCESS) {
    return false;
  }
  verdict_ = Verdict::read(text);
  send(status.MPI_SOURCE);
  return true;
}

void VerdictFlood::tell(Verdict own) {
  verdict_ = std::move(own);
  send(-1);
}

void VerdictFlood::send(int except) {
  const std::string& text = texts_.emplace_back(verdict_->text());
  for (const int to : to_) {
    if (to == except) {
      continue;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, verdict_tag, comm_,
              &request);
    if (to != verdict_->culprit) {
      sends_.push_back(request);
    }
  }
}

void VerdictFlood::wait_until_sent(std::chrono::milliseconds most) {
  const auto start = std::chrono::steady_clock::now();
  int all_sent = 0;
  while (all_sent == 0 && std::chrono::steady_clock::now() - start < most) {
    MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &all_sent, MPI_STATUSES_IGNORE);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace cnn::allreduce
