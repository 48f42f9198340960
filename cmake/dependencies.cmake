# Every library dlbench stands on. A missing or too old one ends the configuration with the package that brings it.

# dlbench_require(<variable that is true when found> <what> <version> <Debian package>)
function(dlbench_require found what version package)
  if(NOT ${found})
    message(FATAL_ERROR "dlbench needs ${what} ${version} or newer, and it was not found. On Debian 12: "
                        "apt-get install ${package}. On another system install its development files and configure again.")
  endif()
endfunction()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "dlbench needs g++ 12 or newer (found ${CMAKE_CXX_COMPILER_VERSION}). On Debian 12: apt-get install g++.")
endif()

find_package(Threads REQUIRED)

find_package(fmt 9 QUIET)
dlbench_require(fmt_FOUND "the fmt library" 9 libfmt-dev)

find_package(nlohmann_json 3.11 QUIET)
dlbench_require(nlohmann_json_FOUND "nlohmann/json" 3.11 nlohmann-json3-dev)

find_package(CLI11 2.1 QUIET)
dlbench_require(CLI11_FOUND "CLI11" 2.1 libcli11-dev)

find_package(benchmark 1.7 QUIET)
dlbench_require(benchmark_FOUND "Google Benchmark" 1.7 libbenchmark-dev)

find_package(TBB 2021.5 QUIET)
dlbench_require(TBB_FOUND "oneTBB" 2021.5 libtbb-dev)

find_path(VALIJSON_INCLUDE_DIR valijson/validator.hpp)
dlbench_require(VALIJSON_INCLUDE_DIR "valijson" 0.6 libvalijson-dev)
add_library(dlbench_valijson INTERFACE)
target_include_directories(dlbench_valijson SYSTEM INTERFACE $<BUILD_INTERFACE:${VALIJSON_INCLUDE_DIR}>)

find_path(BOOST_MATH_INCLUDE_DIR boost/math/distributions/students_t.hpp)
dlbench_require(BOOST_MATH_INCLUDE_DIR "Boost.Math" 1.74 libboost-math-dev)
add_library(dlbench_boost_math INTERFACE)
target_include_directories(dlbench_boost_math SYSTEM INTERFACE $<BUILD_INTERFACE:${BOOST_MATH_INCLUDE_DIR}>)

# OpenBLAS: the pthread variant by its own path; the serial one is not thread-safe and is refused at run time as well.
find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES x86_64-linux-gnu/openblas-pthread aarch64-linux-gnu/openblas-pthread
          openblas-pthread openblas)
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
dlbench_require(OPENBLAS_INCLUDE_DIR "OpenBLAS (pthread variant)" 0.3.21 libopenblas-pthread-dev)
dlbench_require(OPENBLAS_LIBRARY "OpenBLAS (pthread variant)" 0.3.21 libopenblas-pthread-dev)
add_library(dlbench_openblas INTERFACE)
target_include_directories(dlbench_openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
target_link_libraries(dlbench_openblas INTERFACE ${OPENBLAS_LIBRARY})

if(DLBENCH_TESTS)
  find_package(GTest 1.12 QUIET)
  dlbench_require(GTest_FOUND "GoogleTest" 1.12 "libgtest-dev libgmock-dev")
endif()
