# Programs that need nothing of a host but glibc, a driver, cuDNN and cuBLAS; scripts/bundle.sh makes a folder of them.
option(CNN_PORTABLE "Link in what GPU hosts may lack" OFF)
set(CNN_FMT fmt::fmt)
if(CNN_PORTABLE)
  set(CNN_FMT fmt::fmt-header-only)  # Debian has no archive of it
  set(ZLIB_USE_STATIC_LIBS ON)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.a
                  OUTPUT_VARIABLE OpenMP_gomp_LIBRARY OUTPUT_STRIP_TRAILING_WHITESPACE)
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL)  # hidden: cuDNN has a libstdc++ of its own
  set(CMAKE_SKIP_INSTALL_RPATH ON)  # gpu_check.sh finds the host's CUDA libraries
endif()
