#pragma once

#include <cstddef>
#include <span>

namespace cnn {

// One rank's all-reduce over host memory. One thread at a time may use it.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Replaces the pieces, which together form the bucket of that number, by the sum over all ranks
  // times `factor`. All ranks reduce the same buckets in the same order; a bucket's pieces keep
  // their addresses in every call. Blocks until this rank's result is complete. Throws Error if a
  // rank is lost.
  virtual void all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                          float factor) = 0;
  // Frees what the reductions of a bucket need; its next reduction prepares it again. All ranks
  // call it between the same two reductions.
  virtual void release(std::size_t /*bucket*/) {}
  // Takes the memory that a bucket of at most so many elements needs, for buckets that are reduced
  // and released one after another. All ranks call it between the same two reductions.
  virtual void reserve(std::size_t /*elements*/) {}
};

class Stream;

// One rank's all-reduce over device memory: calls enqueue the exchange on a stream.
class StreamCommunicator {
 public:
  virtual ~StreamCommunicator() = default;
  // Declares the number of elements of that bucket. All ranks call it in the same order, before any
  // rank reduces the first bucket.
  virtual void prepare(std::size_t bucket, std::size_t elements) = 0;
  // Enqueues Communicator::all_reduce on the stream; the pieces lie in device memory. A stream may
  // record the call. The next synchronize() of the stream throws an error of the exchange.
  virtual void all_reduce(Stream& stream, std::size_t bucket,
                          std::span<const std::span<float>> pieces, float factor) = 0;
  // Gives the memory of a bucket to those that are prepared later; it must be prepared again before
  // its next reduction. All ranks call it between the same two reductions, after the streams that
  // reduce the bucket have been synchronized.
  virtual void release(std::size_t /*bucket*/) {}
  // As Communicator::reserve(). All ranks call it between the same two reductions.
  virtual void reserve(std::size_t /*elements*/) {}
};

}  // namespace cnn
