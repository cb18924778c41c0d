# The profiles of scripts/machines as a source of bench/machine (see profile.h): the program travels alone.
function(cnn_machines)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scripts/machines/*.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(APPEND texts "R\"json(${text})json\",\n")
  endforeach()
  set(output ${PROJECT_BINARY_DIR}/profile_texts.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "bench/machine/profile.h"

namespace cnn::bench {

std::vector<std::string_view> profile_texts() {
  return {@texts@};
}

}  // namespace cnn::bench
]])
  target_sources(cnn_bench_machine PRIVATE ${output})
endfunction()
