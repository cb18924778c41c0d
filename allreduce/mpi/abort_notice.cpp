#include "allreduce/mpi/abort_notice.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

namespace cnn::allreduce {

std::string AbortNotice::text() const {
  return std::to_string(origin) + " " + std::to_string(culprit) + " " + why;
}

AbortNotice AbortNotice::read(const std::string& text) {
  AbortNotice notice;
  std::istringstream stream(text);
  stream >> notice.origin >> notice.culprit;
  stream.get();  // the blank
  notice.why.assign(std::istreambuf_iterator<char>(stream), {});
  return notice;
}

// Ignores errors of MPI: the run is aborting.
std::optional<AbortNotice> AbortNotices::receive_one() {
  int here = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, abort_tag, comm_, &here, &status) != MPI_SUCCESS || here == 0) {
    return std::nullopt;
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_CHAR, &bytes);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  if (MPI_Recv(text.data(), bytes, MPI_CHAR, status.MPI_SOURCE, abort_tag, comm_,
               MPI_STATUS_IGNORE) != MPI_SUCCESS) {
    return std::nullopt;
  }
  const AbortNotice notice = AbortNotice::read(text);
  gossip_.on_receive(status.MPI_SOURCE, notice.origin);
  return notice;
}

// Receives all notices before it forwards any, because the senders need not get the notice again.
std::optional<AbortNotice> AbortNotices::receive() {
  std::vector<AbortNotice> all;
  while (std::optional<AbortNotice> notice = receive_one()) {
    all.push_back(*std::move(notice));
  }
  for (const AbortNotice& notice : all) {
    forward(notice);
  }
  if (all.empty()) {
    return std::nullopt;
  }
  const auto of_rank_0 = std::ranges::find(all, 0, &AbortNotice::origin);
  return of_rank_0 == all.end() ? all.front() : *of_rank_0;
}

void AbortNotices::forward(const AbortNotice& notice) {
  const std::string& text = texts_.emplace_back(notice.text());
  for (const int to : gossip_.receivers(notice.origin, notice.culprit)) {
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, abort_tag, comm_,
              &sends_.emplace_back(MPI_REQUEST_NULL));
  }
}

void AbortNotices::send(const AbortNotice& own) {
  forward(own);
  if (own.culprit >= 0 && own.culprit != own.origin) {
    MPI_Request ignored = MPI_REQUEST_NULL;
    const std::string& text = texts_.back();
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, own.culprit, abort_tag, comm_,
              &ignored);
  }
}

void AbortNotices::wait_until_sent(std::chrono::milliseconds timeout) {
  const auto start = std::chrono::steady_clock::now();
  int all_sent = 0;
  while (all_sent == 0 && std::chrono::steady_clock::now() - start < timeout) {
    MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &all_sent, MPI_STATUSES_IGNORE);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace cnn::allreduce
