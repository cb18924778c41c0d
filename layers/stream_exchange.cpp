#include "layers/stream_exchange.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "layers/all_reduce.h"

namespace cnn::layers {
namespace {

class AllReduceKernel final : public Kernel {
 public:
  AllReduceKernel(const AllReduce& op, const Signature& signature,
                  std::shared_ptr<StreamCommunicator> communicator)
      : op_(op), communicator_(std::move(communicator)), pieces_(signature.in.size()) {
    std::size_t elements = 0;
    for (const TensorDesc& desc : signature.in) {
      elements += desc.extent() / sizeof(float);
    }
    communicator_->prepare(op_.bucket, elements);
  }

  void run(Stream& stream, const Operands& operands) override {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const TensorView& in = operands.in[i];
      const TensorView& out = operands.out[i];
      if (out.data != in.data) {
        stream.copy(out.data, in.data, in.desc.bytes());
      }
      pieces_[i] = out.as<float>();
    }
    communicator_->all_reduce(stream, op_.bucket, pieces_, op_.factor);
  }

 private:
  AllReduce op_;
  std::shared_ptr<StreamCommunicator> communicator_;
  std::vector<std::span<float>> pieces_;
};

}  // namespace

void add_stream_exchange(KernelTable& table, std::shared_ptr<StreamCommunicator> communicator) {
  table.add<AllReduce>(
      [](const AllReduce& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return KernelSpec{.in = request.in, .out = request.in};  // in every layout
      },
      [communicator = std::move(communicator)](const AllReduce& op, const Signature& signature) {
        return std::make_unique<AllReduceKernel>(op, signature, communicator);
      });
}

}  // namespace cnn::layers
