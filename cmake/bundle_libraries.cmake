# Run by cpack: copies the shared libraries that the program and its backends need beside them, with their licences.
# Set by the caller: program, objects, openblas, libdir, docdir.
set(prefix $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX})

file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${program}
  LIBRARIES ${objects} ${openblas}  # the CPU backend opens OpenBLAS at run time
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|util|resolv|mvec)\\.so" "^lib(stdc\\+\\+|gcc_s)\\.so" "^libdlbench_"
                      # A sanitizer build is never packaged; its runtime must be the compiler's own.
                      "^lib(asan|ubsan)\\.so")
if(missing)
  message(FATAL_ERROR "the package would lack: ${missing}")
endif()

# bundle(<file> <name by which it is looked for>)
function(bundle library soname)
  get_filename_component(real ${library} REALPATH)
  get_filename_component(real_name ${real} NAME)
  message(STATUS "Bundling: ${soname}")
  file(COPY ${real} DESTINATION ${prefix}/${libdir})
  if(NOT real_name STREQUAL soname)
    file(RENAME ${prefix}/${libdir}/${real_name} ${prefix}/${libdir}/${soname})
  endif()

  # Debian keeps the licence of each package in one known place.
  execute_process(COMMAND dpkg-query --search ${real} OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE result)
  if(result EQUAL 0)
    string(REGEX REPLACE ":.*" "" package "${owner}")
    if(EXISTS /usr/share/doc/${package}/copyright)
      configure_file(/usr/share/doc/${package}/copyright ${prefix}/${docdir}/third_party/${package}-copyright COPYONLY)
    endif()
  endif()
endfunction()

foreach(library IN LISTS found)
  get_filename_component(soname ${library} NAME)
  bundle(${library} ${soname})
endforeach()
bundle(${openblas} libopenblas.so.0)
