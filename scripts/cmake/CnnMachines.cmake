# The machines of scripts/machines as a source of bench/machine (see machine_model.h): the program travels alone.
function(cnn_machines)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scripts/machines/*.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(APPEND texts "R\"json(${text})json\",\n")
  endforeach()
  set(output ${PROJECT_BINARY_DIR}/machine_texts.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "bench/machine/machine_model.h"

namespace cnn::bench {

std::vector<std::string_view> machine_texts() {
  return {@texts@};
}

}  // namespace cnn::bench
]])
  target_sources(cnn_bench_machine PRIVATE ${output})
endfunction()
