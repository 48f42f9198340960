# gtest_discover_tests hands its properties through several lists: the semicolons of a value must be escaped for each of
# them, or the value ends at its first semicolon and the next property is lost.
function(dlbench_property_list out)
  list(REMOVE_ITEM ARGN "")
  string(REPLACE ";" "\\\\\\\\\\\\\\;" escaped "${ARGN}")
  set(${out} "${escaped}" PARENT_SCOPE)
endfunction()

# What every test of a build with sanitizers gets. Leaks aren't looked for: the leak checker of g++ 12 crashes in its own
# tracer when threads of a library opened at run time (oneTBB, in the CPU backend) are still there at the end.
set(dlbench_test_environment "")
if(DLBENCH_SANITIZE)
  set(dlbench_test_environment ASAN_OPTIONS=detect_leaks=0)
endif()

# dlbench_test(<name> SOURCES a.cpp … [LIBRARIES …] [LABELS …] [ENVIRONMENT …] [SANITIZED])
# LABELS: unit where none is given.
# SANITIZED: one of the programs that the build with sanitizers makes and runs (label sanitized).
# A GoogleTest program whose cases are found when it is built; every one of them is a ctest.
function(dlbench_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SANITIZED" "" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE dlbench_options dlbench::core GTest::gmock_main ${arg_LIBRARIES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/bench)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(arg_SANITIZED)
    add_dependencies(sanitized_tests ${name})
    list(APPEND arg_LABELS sanitized)
  endif()
  dlbench_property_list(labels ${arg_LABELS})
  dlbench_property_list(environment ${dlbench_test_environment} ${arg_ENVIRONMENT})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}.
    PROPERTIES TIMEOUT 300 LABELS "${labels}" ENVIRONMENT "${environment}")
endfunction()

# dlbench_parity_tests(<name> DEVICE <id> PLUGIN_DIR <folder> [ENVIRONMENT …])
# Registers the parity suite (tests/parity) for a device: ctest entries parity.<name>.*, labels parity and parity_<name>.
function(dlbench_parity_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DEVICE;PLUGIN_DIR" "ENVIRONMENT")
  dlbench_property_list(labels parity parity_${name})
  dlbench_property_list(environment DLBENCH_TEST_DEVICE=${arg_DEVICE} DLBENCH_PLUGIN_DIR=${arg_PLUGIN_DIR}
                        ${dlbench_test_environment} ${arg_ENVIRONMENT})
  gtest_discover_tests(parity_suite DISCOVERY_MODE PRE_TEST TEST_PREFIX parity.${name}. TEST_LIST parity_${name}_tests
    PROPERTIES TIMEOUT 600 LABELS "${labels}" ENVIRONMENT "${environment}")
endfunction()
