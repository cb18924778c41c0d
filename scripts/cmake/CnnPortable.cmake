# CNN_PORTABLE: program and CUDA tests that need nothing of the host but glibc, a driver, cuDNN and cuBLAS, and the
# target `bundle`, a folder of them with what scripts/gpu_check.sh reads. Included before the libraries are looked for.
option(CNN_PORTABLE "Link in what GPU hosts may lack, and make the target bundle" OFF)
set(CNN_FMT fmt::fmt)
if(NOT CNN_PORTABLE)
  return()
endif()
set(CNN_FMT fmt::fmt-header-only)  # Debian has no archive of it
set(ZLIB_USE_STATIC_LIBS ON)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.a
                OUTPUT_VARIABLE gomp OUTPUT_STRIP_TRAILING_WHITESPACE)
set(OpenMP_gomp_LIBRARY ${gomp} CACHE FILEPATH "GNU OpenMP as an archive")
# cuDNN brings a libstdc++ of its own: ours must not be taken for it.
add_link_options(-static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL)
# Installed programs have no RPATH: gpu_check.sh finds the host's CUDA libraries.
set(CMAKE_SKIP_INSTALL_RPATH ON)

# cnn_bundle(target...): the folder bundle of the build, laid out as the repository is, so that scripts work in both.
function(cnn_bundle)
  if(NOT CNN_PORTABLE)
    return()
  endif()
  set(bundle ${PROJECT_BINARY_DIR}/bundle)
  install(TARGETS ${ARGN} RUNTIME DESTINATION bin COMPONENT bundle)
  install(PROGRAMS scripts/gpu_check.sh DESTINATION scripts COMPONENT bundle)
  install(FILES scripts/common.sh DESTINATION scripts COMPONENT bundle)
  install(DIRECTORY scripts/gpu_check scripts/peers scripts/losses DESTINATION scripts COMPONENT bundle
          OPTIONAL FILES_MATCHING PATTERN "*.py")
  install(DIRECTORY tests/losses DESTINATION tests COMPONENT bundle OPTIONAL FILES_MATCHING PATTERN "*.json")
  add_custom_target(bundle
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${bundle}
    COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${bundle} --component bundle --strip
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/bundle_deps.sh ${bundle}/deps
    COMMENT "Filling ${bundle}" VERBATIM)
  add_dependencies(bundle ${ARGN})
endfunction()
