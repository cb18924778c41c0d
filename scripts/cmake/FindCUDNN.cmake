# cuDNN as target CUDNN::cudnn, with CUDNN_VERSION. Hint: CUDNN_ROOT. Looks beside the CUDA toolkit, in the system's
# folders, then in NVIDIA's Python wheels (CNN_WHEELS), which have libcudnn.so.9 and no plain libcudnn.so.
set(roots ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR})
list(TRANSFORM CNN_WHEELS APPEND "/cudnn" OUTPUT_VARIABLE wheels)
find_path(CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${roots} ${CUDAToolkit_INCLUDE_DIRS} PATHS ${wheels}
          PATH_SUFFIXES include)
# The library that belongs to the header: all names of one folder before those of the next.
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 NAMES_PER_DIR
             HINTS ${CUDNN_INCLUDE_DIR}/../lib ${CUDNN_INCLUDE_DIR}/../lib64 ${CUDAToolkit_LIBRARY_DIR})
if(CUDNN_INCLUDE_DIR)
  file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_version.h lines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) [0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
  list(JOIN lines "." CUDNN_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)
if(CUDNN_FOUND AND NOT TARGET CUDNN::cudnn)
  add_library(CUDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(CUDNN::cudnn PROPERTIES IMPORTED_LOCATION ${CUDNN_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${CUDNN_INCLUDE_DIR})
endif()
