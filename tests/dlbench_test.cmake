# dlbench_test(<name> SOURCES a.cpp … [LIBRARIES …] [LABELS …] [ENVIRONMENT …])
# A GoogleTest program whose cases are found when it is built; every one of them is a ctest.
function(dlbench_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE dlbench_options dlbench::core GTest::gmock_main ${arg_LIBRARIES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/bench)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(test_programs ${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}.
    PROPERTIES LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}" TIMEOUT 300)
endfunction()

# dlbench_parity_tests(<name> DEVICE <id> PLUGIN_DIR <folder> [ENVIRONMENT …])
# Registers the parity suite (tests/parity) for a device: ctest entries parity.<name>.*, labels parity and parity_<name>.
function(dlbench_parity_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DEVICE;PLUGIN_DIR" "ENVIRONMENT")
  gtest_discover_tests(parity_suite DISCOVERY_MODE PRE_TEST TEST_PREFIX parity.${name}. TEST_LIST parity_${name}_tests
    PROPERTIES LABELS "parity;parity_${name}" TIMEOUT 600
    ENVIRONMENT "DLBENCH_TEST_DEVICE=${arg_DEVICE};DLBENCH_PLUGIN_DIR=${arg_PLUGIN_DIR};${arg_ENVIRONMENT}")
endfunction()
