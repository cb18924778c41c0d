#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cudnn.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// The only kind of object in cuDNN's backend interface: a descriptor with attributes. The emulation
// always reads a descriptor's meaning back from its attributes.
namespace cnn::tests::emulated {

// The error of a refused call; its text goes to cudnnGetLastErrorString().
class DnnError : public std::runtime_error {
 public:
  DnnError(cudnnStatus_t status, const std::string& what)
      : std::runtime_error(what), status_(status) {}
  cudnnStatus_t status() const { return status_; }

 private:
  cudnnStatus_t status_;
};
// Throws DnnError with this status unless the condition holds.
void require(bool holds, const std::string& what, cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM);

struct Attribute {
  cudnnBackendAttributeType_t type{};
  std::int64_t count = 0;
  std::vector<std::byte> bytes;
};

struct Object {
  cudnnBackendDescriptorType_t type{};
  bool final = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
};

std::size_t bytes_of(cudnnBackendAttributeType_t type);  // bytes of one element
std::string name_of(cudnnBackendDescriptorType_t type);  // such as "a tensor"

// Handles are numbers that are never reused, so the use of a destroyed descriptor is recognised.
cudnnBackendDescriptor_t add_object(cudnnBackendDescriptorType_t type);
void remove_object(cudnnBackendDescriptor_t handle);
// Throws DnnError if the descriptor does not exist or is destroyed.
std::shared_ptr<Object> object_at(cudnnBackendDescriptor_t handle);

// Reads attributes of a descriptor; throws DnnError if one is missing.
class Reader {
 public:
  explicit Reader(const Object& object) : object_(object) {}
  bool has(cudnnBackendAttributeName_t name) const { return object_.attributes.contains(name); }
  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t name) const {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): handles are values here
    const Attribute& attribute = at(name, sizeof(T));
    std::vector<T> values(static_cast<std::size_t>(attribute.count));
    std::copy_n(attribute.bytes.begin(), attribute.bytes.size(),
                reinterpret_cast<std::byte*>(values.data()));
    return values;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    const std::vector<T> values = all<T>(name);
    require(values.size() == 1, "attribute " + std::to_string(name) + " has not one value");
    return values.front();
  }
  // Return the finalized descriptors of that type that the attribute names.
  std::vector<std::shared_ptr<Object>> objects(cudnnBackendAttributeName_t name) const;
  std::shared_ptr<Object> object(cudnnBackendAttributeName_t name,
                                 cudnnBackendDescriptorType_t type) const;

 private:
  const Attribute& at(cudnnBackendAttributeName_t name, std::size_t element_bytes) const;

  const Object& object_;
};

}  // namespace cnn::tests::emulated
