# Tests that need no compiled code. Only one preset runs them: what they find does not depend on the build.

# cnn_script_test(name LABEL unit COMMAND ...): exit code 77 means skipped, with the reason in the output.
function(cnn_script_test name)
  cmake_parse_arguments(ARG "" "LABEL" "COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} SKIP_RETURN_CODE 77 TIMEOUT 1800)
endfunction()

if(CNN_TESTS AND NOT CNN_SANITIZE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(scripts ${PROJECT_SOURCE_DIR}/scripts)
  cnn_script_test(scripts.layers LABEL unit COMMAND Python3::Interpreter ${scripts}/check_layers.py)
  cnn_script_test(scripts.layers_self_test LABEL unit COMMAND Python3::Interpreter ${scripts}/check_layers.py --self-test)
  file(GLOB script_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/scripts/*_test.sh)
  foreach(script IN LISTS script_tests)
    get_filename_component(name ${script} NAME_WE)
    cnn_script_test(scripts.${name} LABEL unit COMMAND bash ${script})
  endforeach()
  if(CNN_MPI)
    cnn_script_test(scripts.silent_rank LABEL unit COMMAND bash tests/scripts/silent_rank.sh $<TARGET_FILE:cnn_allreduce_mpi_tests>)
    cnn_script_test(scripts.cut_link LABEL program COMMAND bash tests/scripts/cut_link.sh $<TARGET_FILE:cnn_benchmarks>)
  endif()
  cnn_script_test(scripts.simgrid LABEL slow COMMAND bash tests/scripts/simgrid.sh ${PROJECT_BINARY_DIR})
  cnn_script_test(scripts.compare LABEL program COMMAND bash tests/scripts/compare.sh $<TARGET_FILE:cnn_compare>)
  cnn_script_test(scripts.page LABEL program COMMAND bash tests/scripts/page.sh $<TARGET_FILE:cnn_benchmarks> $<TARGET_FILE:cnn_compare>)
  cnn_script_test(scripts.rehearsal LABEL program COMMAND bash tests/scripts/rehearsal.sh $<TARGET_FILE:cnn_benchmarks>)
  if(dnnl_FOUND)  # by plain loops they would take an hour
    set(compare_losses Python3::Interpreter ${scripts}/losses/compare.py --program $<TARGET_FILE:cnn_benchmarks>
        --device cpu --precision fp32)
    cnn_script_test(scripts.readme_commands LABEL program COMMAND Python3::Interpreter tests/scripts/readme_commands.py ${PROJECT_BINARY_DIR})
    cnn_script_test(losses.quick LABEL unit COMMAND ${compare_losses} --models trivial,lenet,mnist_deep,resnet20,alexnet_cifar)
    cnn_script_test(losses.all LABEL slow COMMAND ${compare_losses})
  endif()
  cnn_script_test(scripts.format LABEL lint COMMAND ${scripts}/format.sh --check)
  # On two cores all sources take longer than a reader waits; those left out are named.
  cnn_script_test(scripts.tidy LABEL lint COMMAND ${scripts}/tidy.sh --seconds=240)
endif()
