# Warnings, sanitizers and run paths that every target of dlbench shares, as one interface target.
add_library(dlbench_options INTERFACE)
target_compile_features(dlbench_options INTERFACE cxx_std_20)
target_compile_options(dlbench_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Werror=switch;-Werror=return-type>
  # g++ 12 warns falsely about operator+ of a literal and a string (GCC bug 105651).
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(DLBENCH_WERROR)
  target_compile_options(dlbench_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# Results must not depend on contraction chosen by the compiler: fused multiply-adds are written where they are meant.
target_compile_options(dlbench_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# No code here reads floating-point exception flags. g++ may then turn comparisons in a loop into selects and vectorise it
# (src/core/math); no value changes.
target_compile_options(dlbench_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-trapping-math>)
# Sanitizers are linked everywhere. The undefined-behaviour one is compiled into numeric code only (the targets and files
# that ask for it below): in code that instantiates the JSON library it finds nothing and doubles the time of a build.
if(DLBENCH_SANITIZE)
  string(REPLACE "," ";" dlbench_sanitizers "${DLBENCH_SANITIZE}")
  target_link_options(dlbench_options INTERFACE -fsanitize=${DLBENCH_SANITIZE})
  target_compile_options(dlbench_options INTERFACE -fno-omit-frame-pointer -g1)
  foreach(sanitizer ${dlbench_sanitizers})
    if(NOT sanitizer STREQUAL "undefined")
      target_compile_options(dlbench_options INTERFACE -fsanitize=${sanitizer})
    endif()
  endforeach()
endif()
# dlbench_numeric(TARGETS … | SOURCES …): code whose arithmetic the undefined-behaviour sanitizer watches.
function(dlbench_numeric)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "TARGETS;SOURCES")
  if(NOT "undefined" IN_LIST dlbench_sanitizers)
    return()
  endif()
  foreach(target ${arg_TARGETS})
    target_compile_options(${target} PRIVATE -fsanitize=undefined)
  endforeach()
  if(arg_SOURCES)
    set_property(SOURCE ${arg_SOURCES} TARGET_DIRECTORY dlbench_core APPEND PROPERTY COMPILE_OPTIONS -fsanitize=undefined)
  endif()
endfunction()

# dlbench_quick_build(TARGET t HEADERS <a> <b> … [TIMED file …]): what DLBENCH_QUICK_BUILD does to a target. Parsing the
# headers and optimising what the libraries instantiate is most of the time of a build; off where people work, because
# with it a file that forgets an include builds. TIMED: files whose loops are timed, or are long (verification).
function(dlbench_quick_build)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET" "HEADERS;TIMED")
  if(NOT DLBENCH_QUICK_BUILD)
    return()
  endif()
  target_precompile_headers(${arg_TARGET} PRIVATE ${arg_HEADERS} <algorithm> <map> <optional> <ostream> <string> <vector>)
  target_compile_options(${arg_TARGET} PRIVATE -O1)
  if(arg_TIMED)
    list(TRANSFORM arg_TIMED PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    set_property(SOURCE ${arg_TIMED} TARGET_DIRECTORY ${arg_TARGET} APPEND PROPERTY COMPILE_OPTIONS -O3)
    # A header compiled with other options crashes g++ 12.
    set_property(SOURCE ${arg_TIMED} TARGET_DIRECTORY ${arg_TARGET} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()
