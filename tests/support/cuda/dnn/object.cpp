#include "tests/support/cuda/dnn/object.h"

#include <mutex>

namespace cnn::tests::emulated {
namespace {

struct Objects {
  std::mutex mutex;
  std::uintptr_t last = 0;
  std::map<std::uintptr_t, std::shared_ptr<Object>> alive;
};

// All threads share the library's handles.
Objects& objects_of_library() {
  static Objects all;
  return all;
}

}  // namespace

void require(bool holds, const std::string& what, cudnnStatus_t status) {
  if (!holds) {
    throw DnnError(status, what);
  }
}

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;  // 32-bit numbers and enumerations
  }
}

std::string name_of(cudnnBackendDescriptorType_t type) {
  return "the descriptor of type " + std::to_string(type);
}

cudnnBackendDescriptor_t add_object(cudnnBackendDescriptorType_t type) {
  Objects& all = objects_of_library();
  const std::scoped_lock lock(all.mutex);
  all.alive[++all.last] = std::make_shared<Object>(Object{.type = type});
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle is a pointer to the caller
  return reinterpret_cast<cudnnBackendDescriptor_t>(all.last);
}

void remove_object(cudnnBackendDescriptor_t handle) {
  Objects& all = objects_of_library();
  const std::scoped_lock lock(all.mutex);
  require(all.alive.erase(reinterpret_cast<std::uintptr_t>(handle)) == 1,
          "a descriptor is destroyed that is none");
}

std::shared_ptr<Object> object_at(cudnnBackendDescriptor_t handle) {
  Objects& all = objects_of_library();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.alive.find(reinterpret_cast<std::uintptr_t>(handle));
  require(found != all.alive.end(), "a descriptor is used that is none, or is destroyed");
  return found->second;
}

const Attribute& Reader::at(cudnnBackendAttributeName_t name, std::size_t element_bytes) const {
  const auto found = object_.attributes.find(name);
  require(found != object_.attributes.end(),
          name_of(object_.type) + " has no attribute " + std::to_string(name));
  require(bytes_of(found->second.type) == element_bytes,
          "attribute " + std::to_string(name) + " is read as another type than it has",
          CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  return found->second;
}

std::vector<std::shared_ptr<Object>> Reader::objects(cudnnBackendAttributeName_t name) const {
  std::vector<std::shared_ptr<Object>> result;
  for (cudnnBackendDescriptor_t const handle : all<cudnnBackendDescriptor_t>(name)) {
    result.push_back(object_at(handle));
    require(result.back()->final,
            "attribute " + std::to_string(name) + " of " + name_of(object_.type) +
                " names a descriptor that is not final",
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  }
  return result;
}

std::shared_ptr<Object> Reader::object(cudnnBackendAttributeName_t name,
                                       cudnnBackendDescriptorType_t type) const {
  const auto found = objects(name);
  require(found.size() == 1 && found.front()->type == type,
          "attribute " + std::to_string(name) + " of " + name_of(object_.type) +
              " is not one descriptor of type " + std::to_string(type),
          CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
  return found.front();
}

}  // namespace cnn::tests::emulated
