#include "layers/all_reduce.h"

#include <cstring>
#include <memory>
#include <vector>

#include "layers/cpu/kernels.h"

namespace cnn::layers::cpu {
namespace {

class AllReduceKernel final : public Kernel {
 public:
  AllReduceKernel(const AllReduce& op, std::size_t tensors, Communicator& communicator)
      : op_(op), communicator_(communicator), pieces_(tensors) {}

  void run(Stream& stream, const Operands& operands) override {
    stream.host([this, &operands] { reduce(operands); });
  }

 private:
  void reduce(const Operands& operands) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const TensorView& in = operands.in[i];
      const TensorView& out = operands.out[i];
      if (out.data != in.data) {
        std::memcpy(out.data, in.data, in.desc.bytes());
      }
      pieces_[i] = out.as<float>();
    }
    communicator_.all_reduce(op_.bucket, pieces_, op_.factor);
  }

  AllReduce op_;
  Communicator& communicator_;
  std::vector<std::span<float>> pieces_;
};

}  // namespace

void add_exchange(KernelTable& table, Communicator& communicator) {
  table.add<AllReduce>(
      [](const AllReduce& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return KernelSpec{.in = request.in, .out = request.in};  // in every layout
      },
      [&communicator](const AllReduce& op, const Signature& signature) {
        return std::make_unique<AllReduceKernel>(op, signature.in.size(), communicator);
      });
}

}  // namespace cnn::layers::cpu
