#pragma once

namespace cnn::allreduce {

// Makes Open MPI 4 report problems from a thread of its own, and does nothing in any other MPI.
// Without it, the MPI call that meets a problem ("peer hung up", "connect() failed") reports it and
// does not return before the daemon of this host has answered. A daemon that is ending the job does
// not answer: it kills the rank, which can then neither name the rank that is lost nor end with its
// own exit code. To be called once, after MPI_Init.
void report_problems_without_waiting();

}  // namespace cnn::allreduce
