// Tests that the emulated cuDNN refuses invalid calls and says why.

#include <array>
#include <cudnn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "layers/cuda/conv_graph.h"
#include "layers/cuda/cudnn/plan.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/stream.h"
#include "runtime/error.h"

namespace cnn::tests {
namespace {

using layers::cuda::Arguments;
using layers::cuda::Descriptor;
using layers::cuda::Plan;
using testing::HasSubstr;

// Returns the message of the function's Error.
template <class Function>
std::string refusal(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

struct TensorWords {
  std::vector<std::int64_t> sizes{2, 8, 4, 4}, strides{128, 1, 32, 8};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};

Descriptor tensor(const TensorWords& words) {
  Descriptor result(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  result.set(CUDNN_ATTR_TENSOR_DATA_TYPE, words.type);
  result.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(words.sizes));
  result.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(words.strides));
  result.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{1});
  result.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  return result;
}

TEST(EmulatedDnn, NamesAnAttributeThatIsNotThere) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_THAT(refusal([&] { made.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, std::int64_t{1}); }),
              HasSubstr("has no attribute " + std::to_string(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)));
  EXPECT_THAT(refusal([&] { made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, 1.0F); }),
              HasSubstr("has another type"));
  EXPECT_THAT(refusal([&] { made.finalize("a tensor"); }), HasSubstr("lacks attribute"));
}

TEST(EmulatedDnn, RefusesStridesThatLetElementsMeet) {
  EXPECT_EQ(refusal([] { tensor({}).finalize("a tensor"); }), "no error");
  EXPECT_THAT(refusal([] {
                tensor({.strides = {128, 1, 31, 8}}).finalize("a tensor");
              }),
              HasSubstr("two elements share an address"));
  EXPECT_THAT(refusal([] { tensor({.type = CUDNN_DATA_INT8}).finalize("a tensor"); }),
              HasSubstr("is not emulated"));
}

TEST(EmulatedDnn, NamesADescriptorThatIsDestroyed) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
  {
    Descriptor gone = tensor({});
    gone.finalize("a tensor");
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, gone);
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, gone);
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, gone);
  }
  EXPECT_THAT(refusal([&] { operation.finalize("statistics"); }), HasSubstr("is destroyed"));
}

TEST(EmulatedDnn, RefusesAnOutputOfAnotherSize) {
  layers::cuda::ConvGraph graph{
      .type = DataType::f32, .x = {2, 8, 4, 4}, .w = {8, 8, 1, 1}, .y = {2, 8, 4, 3}, .window = {}};
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  const layers::cuda::CudnnHandle owned(handle);
  const auto target = layers::cuda::Target::live(handle);
  EXPECT_THAT(refusal([&] { layers::cuda::NativeGraph(operations_of(graph), target); }),
              HasSubstr("has size 3, not 4"));
}

// A plan of a 1x1 convolution with operands of the right size.
class EmulatedPlan : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    owned_.reset(handle_);
    stream_ = device_.make_stream(Lane::compute);
    ASSERT_EQ(cudnnSetStream(handle_, cuda::native(*stream_)), CUDNN_STATUS_SUCCESS);
    target_ = layers::cuda::Target::live(handle_);
    const layers::cuda::ConvGraph graph{.type = DataType::f32,
                                        .x = {2, 8, 4, 4},
                                        .w = {8, 8, 1, 1},
                                        .y = {2, 8, 4, 4},
                                        .window = {}};
    graph_.emplace(operations_of(graph), *target_);
    layers::cuda::Choice choice;
    choice.engine = 2;
    plan_.emplace(*graph_, choice);
    for (const std::size_t elements : {256, 64, 256}) {
      operands_.push_back(device_.allocate(elements * sizeof(float)));
      pointers_.push_back(operands_.back().data());
    }
    workspace_ = device_.allocate(plan_->workspace());
  }

  std::string refusal_of_run(void* workspace) {
    return refusal([&] { plan_->run(handle_, arguments_, pointers_, workspace); });
  }

  cuda::CudaDevice device_;
  cudnnHandle_t handle_ = nullptr;
  layers::cuda::CudnnHandle owned_;
  std::unique_ptr<Stream> stream_;
  std::optional<layers::cuda::Target> target_;
  std::optional<layers::cuda::NativeGraph> graph_;
  std::optional<Plan> plan_;
  Arguments arguments_;
  std::vector<Buffer> operands_;
  std::vector<void*> pointers_;
  Buffer workspace_;
};

TEST_F(EmulatedPlan, RunsOnOperandsThatFit) {
  EXPECT_EQ(refusal_of_run(workspace_.data()), "no error");
  stream_->synchronize();
}

TEST_F(EmulatedPlan, RefusesAnUnalignedPointer) {
  pointers_[1] = operands_[0].data() + 4;
  EXPECT_THAT(refusal_of_run(workspace_.data()),
              testing::AllOf(HasSubstr("tensor 2"), HasSubstr("not aligned to 16 bytes")));
}

TEST_F(EmulatedPlan, RefusesAnOperandThatIsTooSmall) {
  pointers_[0] = operands_[1].data();
  EXPECT_THAT(refusal_of_run(workspace_.data()),
              testing::AllOf(HasSubstr("tensor 1"), HasSubstr("leaves its block")));
}

TEST_F(EmulatedPlan, RefusesMemoryOfTheHost) {
  alignas(64) std::array<float, 64> numbers{};
  pointers_[1] = numbers.data();
  EXPECT_THAT(refusal_of_run(workspace_.data()), HasSubstr("is no memory of device 0"));
}

TEST_F(EmulatedPlan, RefusesAWorkspaceThatIsTooSmall) {
  EXPECT_THAT(refusal_of_run(operands_[0].data()),
              testing::AllOf(HasSubstr("the workspace"), HasSubstr("leaves its block")));
}

// A plan keeps state from one run to the next to save time; it must notice that addresses have
// changed.
TEST_F(EmulatedPlan, RunsOnTheOperandsOfEachCall) {
  const std::vector<float> ones(256, 1.0F);
  for (const std::size_t operand : {0U, 1U}) {
    stream_->copy(operands_[operand].data(), reinterpret_cast<const std::byte*>(ones.data()),
                  operands_[operand].bytes());
  }
  EXPECT_EQ(refusal_of_run(workspace_.data()), "no error");
  const Buffer other = device_.allocate(operands_[2].bytes());
  pointers_[2] = other.data();
  EXPECT_EQ(refusal_of_run(workspace_.data()), "no error");
  std::vector<float> result(256);
  stream_->copy(reinterpret_cast<std::byte*>(result.data()), other.data(), other.bytes());
  stream_->synchronize();
  EXPECT_THAT(result, testing::Each(8.0F)) << "a sum over eight channels";
}

TEST_F(EmulatedPlan, RunsInTheWorkspaceOfEachCall) {
  EXPECT_EQ(refusal_of_run(workspace_.data()), "no error");
  EXPECT_THAT(refusal_of_run(operands_[0].data()), HasSubstr("the workspace"));
  stream_->synchronize();
}

}  // namespace
}  // namespace cnn::tests
