# Warnings and sanitizers, for every target of the project.
# -Wno-restrict: g++ 12 warns about its own std::string at -O3 (GCC bug 105651).
set(warnings -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-restrict -Wno-psabi
             -Wno-missing-field-initializers)
if(CNN_WARNINGS_AS_ERRORS)
  # CI asks for it. The warnings that must be gone are those of its compiler; newer ones warn about more, some of it wrongly.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND warnings -Werror)
  else()
    message(STATUS "Warnings are errors with g++ 12 only")
  endif()
endif()
# The source that nvcc makes for the host compiler is not pedantic.
list(JOIN warnings "," host_warnings)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wpedantic>"
                    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_warnings}>")
if(CNN_SANITIZE)
  add_compile_options(-fsanitize=${CNN_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CNN_SANITIZE})
  # UndefinedBehaviorSanitizer's checks of each pointer take half of the time in which a source compiles. AddressSanitizer
  # stops at wild and null pointers too: only sources that read the bytes of files as other types have these checks.
  set(CNN_WITHOUT_POINTER_CHECKS -fno-sanitize=null,alignment,object-size,vptr,nonnull-attribute,returns-nonnull-attribute)
endif()

find_program(CNN_CCACHE ccache)
foreach(language CXX CUDA)
  if(CNN_CCACHE AND NOT CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER ${CNN_CCACHE})
  endif()
endforeach()
