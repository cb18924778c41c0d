#pragma once

#include <cstddef>
#include <span>

namespace cnn {

// How a rank adds up with others what each of them has computed. Used by one thread at a time.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // The pieces, which together are the bucket of that number, become the sum over all ranks times
  // the factor. All ranks reduce the same buckets in the same order; pieces lie at the same
  // addresses every time. Blocks until this rank's result is there. Throws Error if a rank is lost.
  virtual void all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                          float factor) = 0;
};

class Stream;

// The same where a device computes whose memory the host does not see: what is asked is enqueued.
class StreamCommunicator {
 public:
  virtual ~StreamCommunicator() = default;
  // The bucket of that number has so many elements. Before the first of them is reduced, on all
  // ranks in the same order.
  virtual void prepare(std::size_t bucket, std::size_t elements) = 0;
  // As Communicator::all_reduce, in the stream's order; pieces are in the device's memory. May be
  // recorded. An error of the sum is thrown by the stream's next synchronize().
  virtual void all_reduce(Stream& stream, std::size_t bucket,
                          std::span<const std::span<float>> pieces, float factor) = 0;
};

}  // namespace cnn
