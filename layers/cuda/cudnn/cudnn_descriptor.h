#pragma once

#include <cstdint>
#include <cudnn.h>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// RAII wrapper of cuDNN's backend API, in which every object is a descriptor: its attributes are
// set, it is finalized, and then it can be queried and be an attribute of other descriptors.
namespace cnn::layers::cuda {

// Throws Error "cuDNN cannot <doing>: <status>: <the library's message>" unless the status is
// success.
void check_cudnn(cudnnStatus_t status, std::string_view doing,
                 std::source_location at = std::source_location::current());

// cuDNN's attribute type for values of C++ type T.
template <class T>
inline constexpr cudnnBackendAttributeType_t attribute_type = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr auto attribute_type<std::int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr auto attribute_type<std::int32_t> = CUDNN_TYPE_INT32;
template <>
inline constexpr auto attribute_type<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr auto attribute_type<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr auto attribute_type<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr auto attribute_type<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr auto attribute_type<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr auto attribute_type<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr auto attribute_type<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr auto attribute_type<cudnnGenStatsMode_t> = CUDNN_TYPE_GENSTATS_MODE;
template <>
inline constexpr auto attribute_type<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr auto attribute_type<cudnnBackendKnobType_t> = CUDNN_TYPE_KNOB_TYPE;
template <>
inline constexpr auto attribute_type<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;
template <>
inline constexpr auto attribute_type<cudnnBackendBehaviorNote_t> = CUDNN_TYPE_BEHAVIOR_NOTE;

// Owns one backend descriptor. All members throw Error if cuDNN reports a failure.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  template <class T>
  void set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set(name, attribute_type<T>, static_cast<std::int64_t>(values.size()), values.data());
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, const T& value) {
    set(name, std::span<const T>(&value, 1));
  }
  // Set finalized descriptors as an attribute. cuDNN stores references: `value` must outlive this
  // descriptor.
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);

  void finalize(std::string_view what);  // throws Error that names `what` if cuDNN refuses
  bool try_finalize();                   // returns whether cuDNN accepts the descriptor

  template <class T>
  T get(cudnnBackendAttributeName_t name) const {
    T value{};
    get(name, attribute_type<T>, 1, &value);
    return value;
  }
  // Returns the values of an attribute, at most this many.
  template <class T>
  std::vector<T> get_all(cudnnBackendAttributeName_t name, std::size_t at_most) const {
    std::vector<T> values(at_most);
    values.resize(get(name, attribute_type<T>, at_most, values.data()));
    return values;
  }
  std::string text(cudnnBackendAttributeName_t name) const;
  // Returns the descriptors of this type that the attribute holds, at most this many.
  std::vector<Descriptor> descriptors(cudnnBackendAttributeName_t name,
                                      cudnnBackendDescriptorType_t type, std::size_t at_most) const;
  std::size_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;

  cudnnBackendDescriptor_t native() const { return handle_.get(); }

 private:
  struct Release {
    void operator()(void* descriptor) const noexcept;
  };

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  std::size_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::size_t count, void* values) const;

  std::unique_ptr<void, Release> handle_;
};

}  // namespace cnn::layers::cuda
