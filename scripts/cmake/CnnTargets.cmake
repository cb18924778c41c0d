# A target is its folder: cnn_folder(runtime/cpu DEPENDS runtime LIBRARIES ...) makes cnn_runtime_cpu of
# every .cpp and .cu in runtime/cpu, and cnn_tests(runtime) one GoogleTest binary of tests/runtime.

function(cnn_target_name folder out)
  string(REPLACE "/" "_" name "cnn_${folder}")
  set(${out} ${name} PARENT_SCOPE)
endfunction()

function(cnn_link target scope)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES" ${ARGN})
  foreach(folder IN LISTS ARG_DEPENDS)
    cnn_target_name(${folder} dependency)
    target_link_libraries(${target} ${scope} ${dependency})
  endforeach()
  target_link_libraries(${target} ${scope} ${ARG_LIBRARIES})
endfunction()

# Files with one of the endings in the folders named.
function(cnn_glob out endings)
  set(all "")
  foreach(folder IN LISTS ARGN)
    foreach(ending IN LISTS endings)
      file(GLOB found CONFIGURE_DEPENDS ${folder}/*.${ending})
      list(APPEND all ${found})
    endforeach()
  endforeach()
  set(${out} ${all} PARENT_SCOPE)
endfunction()

option(CNN_JOIN "Compile several sources as one: for builds from nothing" OFF)

# Several sources of a folder compiled as one, which takes less than half the time, but all of it after a change of one:
# everything under sanitizers or with CNN_JOIN. The names local to a file are then names of its folder.
# Further arguments (APART of the callers): sources that use the same names for different things, or `all` of them.
function(cnn_join target)
  if((CNN_SANITIZE OR CNN_JOIN) AND NOT ARGN STREQUAL "all")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    if(CNN_JOIN)
      target_compile_options(${target} PRIVATE -Wno-shadow)  # what it would name lies in another file
    endif()
  endif()
endfunction()

# Files whose names end in _avx2 to _amx_bf16 are compiled for that instruction set; who calls them asks the processor first.
# (GCC 12 takes the undefined operands inside its own AVX-512 intrinsics for mistakes.)
set(CNN_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(CNN_FLAGS_avx512 -mavx512f -mavx512cd -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c
                     -mprefer-vector-width=512 -Wno-uninitialized -Wno-maybe-uninitialized)
set(CNN_FLAGS_avx512_bf16 ${CNN_FLAGS_avx512} -mavx512bf16)
set(CNN_FLAGS_amx_bf16 ${CNN_FLAGS_avx512_bf16} -mamx-tile -mamx-bf16)

# WITH names sub-folders whose sources belong to the target too, and CHOSEN single sources, of which the caller picks one
# of several: all of them may use the folder above.
function(cnn_folder folder)
  cmake_parse_arguments(ARG "" "" "APART;WITH;CHOSEN;DEPENDS;LIBRARIES" ${ARGN})
  list(TRANSFORM ARG_WITH PREPEND ${folder}/)
  cnn_glob(sources "cpp;cu" ${folder} ${ARG_WITH})
  list(APPEND sources ${ARG_CHOSEN})
  foreach(source IN LISTS sources)
    if(source MATCHES "_(avx2|avx512|avx512_bf16|amx_bf16)\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${CNN_FLAGS_${CMAKE_MATCH_1}}")
    endif()
  endforeach()
  cnn_glob(headers h ${folder} ${ARG_WITH})
  list(FILTER sources EXCLUDE REGEX "main\\.cpp$")
  cnn_target_name(${folder} target)
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    cnn_join(${target} ${ARG_APART})
    if(NOT folder STREQUAL "data")
      target_compile_options(${target} PRIVATE ${CNN_WITHOUT_POINTER_CHECKS})
    endif()
  else()
    set(scope INTERFACE)  # nothing but headers
    add_library(${target} INTERFACE)
  endif()
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR})
  target_compile_features(${target} ${scope} cxx_std_20)
  cnn_link(${target} ${scope} DEPENDS ${ARG_DEPENDS} LIBRARIES ${ARG_LIBRARIES})
endfunction()

# cnn_program(name bench/main.cpp DEPENDS ...): an executable of one source and the folders.
function(cnn_program name source)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${source})
    add_executable(${name} ${source})
    cnn_link(${name} PUBLIC ${ARGN})
  endif()
endfunction()

# cnn_module(name main.cpp OF programs DEPENDS ...): what they open by name in their own folder when a run needs it. Both
# have the folders that they share; the dynamic linker takes the program's. In portable builds it is a part of them.
function(cnn_module name source)
  cmake_parse_arguments(ARG "" "" "OF;DEPENDS" ${ARGN})
  if(NOT CNN_PORTABLE)
    add_library(${name} MODULE ${source})
    set_target_properties(${name} PROPERTIES PREFIX "")
    cnn_link(${name} PRIVATE DEPENDS ${ARG_DEPENDS})
  endif()
  foreach(program IN LISTS ARG_OF)
    set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON)
    if(CNN_PORTABLE)
      target_sources(${program} PRIVATE ${source})
      cnn_link(${program} PUBLIC DEPENDS ${ARG_DEPENDS})
    else()
      add_dependencies(${program} ${name})
    endif()
  endforeach()
endfunction()

# Version and commit as a source of the folder, looked up at every build, since a commit does not configure.
function(cnn_build_info folder)
  cnn_target_name(${folder} target)
  set(output ${PROJECT_BINARY_DIR}/build_info.cpp)
  add_custom_target(${target}_info BYPRODUCTS ${output}
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
            -DOUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/scripts/cmake/WriteBuildInfo.cmake)
  target_sources(${target} PRIVATE ${output})
  add_dependencies(${target} ${target}_info)
endfunction()

# Test sources cost more time to compile than to run: what takes long, and what shall be checked, is in the libraries.
if(CNN_SANITIZE)
  set(CNN_TEST_FLAGS -O0 -fno-sanitize=undefined)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(CNN_TEST_FLAGS -O1)
endif()

# Only where it is used: any other object may then come from a cache that another checkout filled.
function(cnn_define_source_dir)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} used REGEX CNN_SOURCE_DIR LIMIT_COUNT 1)
    if(used)
      set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS CNN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    endif()
  endforeach()
endfunction()

# WITH: tests in these sub-folders, which belong to the same binary. BESIDES: sources that another target has.
# PROGRAM name: the tests run this executable, whose path they get as CNN_PROGRAM, instead of linking a folder.
function(cnn_tests folder)
  if(NOT CNN_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "PROGRAM" "APART;WITH;BESIDES;DEPENDS;LIBRARIES;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  list(TRANSFORM ARG_WITH PREPEND tests/${folder}/)
  cnn_glob(sources "cpp;cu" tests/${folder} ${ARG_WITH})
  list(REMOVE_ITEM sources "" ${ARG_BESIDES})
  if(CNN_SANITIZE)  # they replace malloc, as the first does, end the race of the second, and need memory in the third
    list(FILTER sources EXCLUDE REGEX "(no_allocation|missing_wait|resource_limits)_test\\.cpp$")
  endif()
  if(NOT sources)
    return()
  endif()
  cnn_target_name(${folder} target)
  add_executable(${target}_tests ${sources})
  target_compile_options(${target}_tests PRIVATE ${CNN_TEST_FLAGS})
  cnn_join(${target}_tests ${ARG_APART})
  if(CNN_SANITIZE AND NOT CNN_CCACHE)  # where warnings are errors g++ 12 warns about its own std::string
    target_precompile_headers(${target}_tests PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  cnn_define_source_dir(${sources})
  if(ARG_PROGRAM)
    target_compile_definitions(${target}_tests PRIVATE CNN_PROGRAM="$<TARGET_FILE:${ARG_PROGRAM}>")
    target_include_directories(${target}_tests PRIVATE ${PROJECT_SOURCE_DIR})
    add_dependencies(${target}_tests ${ARG_PROGRAM})
  endif()
  if(ARG_PROGRAM OR NOT TARGET ${target})
    set(folder "")
  endif()
  cnn_link(${target}_tests PUBLIC DEPENDS ${folder} ${ARG_DEPENDS} LIBRARIES ${ARG_LIBRARIES}
           GTest::gtest_main GTest::gmock)
  cnn_discover_tests(${target}_tests "${ARG_LABELS}")
endfunction()

# One GoogleTest binary of tests/<folder> with a main of its own, run by mpirun as each number of ranks. Not under
# sanitizers, which would judge MPI's own memory.
function(cnn_tests_of_ranks folder)
  cnn_target_name(${folder} target)
  cnn_glob(sources cpp tests/${folder})
  if(CNN_MPI AND CNN_TESTS AND sources AND NOT CNN_SANITIZE)
    add_executable(${target}_tests ${sources})
    target_compile_options(${target}_tests PRIVATE ${CNN_TEST_FLAGS})
    cnn_link(${target}_tests PUBLIC DEPENDS ${folder} LIBRARIES GTest::gtest)
    foreach(ranks IN LISTS ARGN)
      add_test(NAME ${target}_tests.${ranks}_ranks COMMAND bash ${PROJECT_SOURCE_DIR}/tests/scripts/as_ranks.sh ${ranks}
               $<TARGET_FILE:${target}_tests> --gtest_brief=1)
      set_tests_properties(${target}_tests.${ranks}_ranks PROPERTIES LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 300)
    endforeach()
  endif()
endfunction()

# The tests of that folder which match the filter, once with each limit to the instruction sets that lets the machine
# show what lesser ones do. Its own sets are those of the tests without a limit.
function(cnn_tests_at_most_each_isa folder filter)
  cnn_target_name(${folder} target)
  if(NOT TARGET ${target}_tests OR CNN_SANITIZE)
    return()
  endif()
  foreach(isa IN ITEMS avx2 avx512 avx512_bf16 avx512_fp16)
    set(name ${target}_tests.at_most_${isa})
    add_test(NAME ${name} COMMAND bash ${PROJECT_SOURCE_DIR}/tests/scripts/at_most.sh ${isa}
             $<TARGET_FILE:${target}_tests> --gtest_brief=1 --gtest_filter=${filter})
    set_tests_properties(${name} PROPERTIES LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 900)
  endforeach()
endfunction()

option(CNN_GROUP_TESTS "Run many cases in a process: for runs of all tests" OFF)

# One test of each case, or four shards of the program with CNN_GROUP_TESTS and under sanitizers, where a process takes
# long to start. The output of a shard names the cases that fail. Programs of label `program` start processes themselves, and
# those of runtime watch allocations and limits of the whole process.
# A suite whose name starts with Slow runs on demand only, one that starts with Long not under sanitizers.
# Further argument: a filter of the tests that run under sanitizers, where all would take too long.
function(cnn_discover_tests target labels)
  if(CNN_SANITIZE OR (CNN_GROUP_TESTS AND NOT "${labels};${target}" MATCHES "program|cnn_runtime_tests"))
    set(filter "${ARGN}-Slow*")
    if(CNN_SANITIZE)
      string(APPEND filter ":Long*")
    endif()
    foreach(shard RANGE 3)
      add_test(NAME ${target}.${shard} COMMAND bash ${PROJECT_SOURCE_DIR}/tests/scripts/shard.sh 1100
               $<TARGET_FILE:${target}> --gtest_filter=${filter})
      set_tests_properties(${target}.${shard} PROPERTIES LABELS "${labels}" TIMEOUT 1200 SKIP_RETURN_CODE 77
                           ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard}")
    endforeach()
  else()
    gtest_discover_tests(${target} TEST_FILTER "-Slow*" DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS "${labels}" TIMEOUT 300)
  endif()
  if(NOT CNN_SANITIZE)
    gtest_discover_tests(${target} TEST_FILTER "Slow*" DISCOVERY_TIMEOUT 60
                         TEST_LIST ${target}_slow_list PROPERTIES LABELS slow TIMEOUT 3600)
  endif()
endfunction()
