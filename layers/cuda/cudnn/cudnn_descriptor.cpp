#include "layers/cuda/cudnn/cudnn_descriptor.h"

#include <array>

#include "runtime/error.h"

namespace cnn::layers::cuda {

void check_cudnn(cudnnStatus_t status, std::string_view doing, std::source_location at) {
  if (status == CUDNN_STATUS_SUCCESS) {
    return;
  }
  std::array<char, 512> said{};
  cudnnGetLastErrorString(said.data(), said.size());
  std::string text = "cuDNN cannot " + std::string(doing) + ": " + cudnnGetErrorString(status);
  if (said.front() != '\0') {
    text += std::string(": ") + said.data();
  }
  throw Error(text, at);
}

void Descriptor::Release::operator()(void* descriptor) const noexcept {
  static_cast<void>(cudnnBackendDestroyDescriptor(descriptor));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t raw = nullptr;
  check_cudnn(cudnnBackendCreateDescriptor(type, &raw),
              "make a descriptor of type " + std::to_string(type));
  handle_.reset(raw);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t count, const void* values) {
  check_cudnn(cudnnBackendSetAttribute(native(), name, type, count, values),
              "set attribute " + std::to_string(name));
}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  cudnnBackendDescriptor_t raw = value.native();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& value : values) {
    raw.push_back(value.native());
  }
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data());
}

void Descriptor::finalize(std::string_view what) {
  check_cudnn(cudnnBackendFinalize(native()), "take " + std::string(what));
}

bool Descriptor::try_finalize() { return cudnnBackendFinalize(native()) == CUDNN_STATUS_SUCCESS; }

std::size_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::size_t count, void* values) const {
  std::int64_t got = 0;
  check_cudnn(cudnnBackendGetAttribute(native(), name, type, static_cast<std::int64_t>(count), &got,
                                       values),
              "read attribute " + std::to_string(name));
  return static_cast<std::size_t>(got);
}

std::size_t Descriptor::count(cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type) const {
  return get(name, type, 0, nullptr);
}

std::string Descriptor::text(cudnnBackendAttributeName_t name) const {
  std::string value(count(name, CUDNN_TYPE_CHAR), '\0');
  value.resize(get(name, CUDNN_TYPE_CHAR, value.size(), value.data()));
  while (!value.empty() && value.back() == '\0') {
    value.pop_back();
  }
  return value;
}

std::vector<Descriptor> Descriptor::descriptors(cudnnBackendAttributeName_t name,
                                                cudnnBackendDescriptorType_t type,
                                                std::size_t at_most) const {
  std::vector<Descriptor> result;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::size_t i = 0; i < at_most;
       ++i) {  // cuDNN copies into descriptors that the caller has created
    raw.push_back(result.emplace_back(type).native());
  }
  const std::size_t got = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
  result.erase(result.begin() + static_cast<std::ptrdiff_t>(got), result.end());
  return result;
}

}  // namespace cnn::layers::cuda
