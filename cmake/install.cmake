# Installation, exported targets and the relocatable package.
#
#   cmake --install build/cpu --prefix DIR     the program, its backends and dlbench::core; libraries of the system stay there
#   cpack -G TGZ (in a build folder)           the same plus TBB, OpenBLAS (with gfortran, quadmath), fmt and Google
#                                              Benchmark beside it, for machines that don't have them
#
# Layout: bin/dlbench, lib/dlbench/*.so, include/dlbench, share/dlbench/{configs,schema}, lib/cmake/dlbench.
include(CMakePackageConfigHelpers)

set(DLBENCH_LIBDIR lib/dlbench)                    # <prefix>/lib/dlbench: one of the places where backends are looked for
set(DLBENCH_DATADIR ${CMAKE_INSTALL_DATADIR}/dlbench)
set(DLBENCH_CMAKEDIR lib/cmake/dlbench)

set(backends "")
foreach(kind cpu gpu)
  if(TARGET dlbench_backend_${kind})
    list(APPEND backends dlbench_backend_${kind})
  endif()
endforeach()

# $ORIGIN paths make the tree movable. DT_RPATH instead of DT_RUNPATH: only the former also holds for the libraries of
# libraries, and Debian's libopenblas.so has no path of its own to its gfortran.
foreach(target dlbench dlbench_core ${backends})
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN)
endforeach()
set_target_properties(dlbench PROPERTIES INSTALL_RPATH $ORIGIN/../${DLBENCH_LIBDIR})

install(TARGETS dlbench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(TARGETS dlbench_core EXPORT dlbenchTargets LIBRARY DESTINATION ${DLBENCH_LIBDIR} COMPONENT program)
if(backends)
  install(TARGETS ${backends} LIBRARY DESTINATION ${DLBENCH_LIBDIR} COMPONENT program)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs/ DESTINATION ${DLBENCH_DATADIR}/configs COMPONENT program
        FILES_MATCHING PATTERN *.json PATTERN *.csv)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/results/schema/ DESTINATION ${DLBENCH_DATADIR}/schema COMPONENT program
        FILES_MATCHING PATTERN *.json)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT program)

# The man page and the completion come from the program itself, so they can't name an option that it lacks.
set(man_page ${PROJECT_BINARY_DIR}/share/man/man1/dlbench.1)
set(completion ${PROJECT_BINARY_DIR}/share/bash-completion/completions/dlbench)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/man/man1 ${PROJECT_BINARY_DIR}/share/bash-completion/completions)
add_custom_command(OUTPUT ${man_page} COMMAND dlbench help-man > ${man_page} DEPENDS dlbench VERBATIM)
add_custom_command(OUTPUT ${completion} COMMAND dlbench help-completion > ${completion} DEPENDS dlbench VERBATIM)
add_custom_target(dlbench_help ALL DEPENDS ${man_page} ${completion})
install(FILES ${man_page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)

# For programs that read results or write backends: find_package(dlbench), dlbench::core.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/core DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dlbench COMPONENT development
        FILES_MATCHING PATTERN *.h PATTERN *.def)
install(EXPORT dlbenchTargets NAMESPACE dlbench:: DESTINATION ${DLBENCH_CMAKEDIR} COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/dlbenchConfig.cmake.in ${PROJECT_BINARY_DIR}/dlbenchConfig.cmake
                              INSTALL_DESTINATION ${DLBENCH_CMAKEDIR})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dlbenchConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dlbenchConfig.cmake ${PROJECT_BINARY_DIR}/dlbenchConfigVersion.cmake
        DESTINATION ${DLBENCH_CMAKEDIR} COMPONENT development)

# The package alone bundles what it needs. Not bundled: glibc, because it belongs to its kernel interface and loader, and
# libstdc++ and libgcc_s, because the GPU driver's libraries bring their own demands on them: an older copy beside the
# program would shadow the newer one of the system, while a newer one always serves an older program.
set(bundle_script ${PROJECT_BINARY_DIR}/bundle_libraries.cmake)
set(bundle_objects $<TARGET_FILE:dlbench_core>)
foreach(backend IN LISTS backends)
  list(APPEND bundle_objects $<TARGET_FILE:${backend}>)
endforeach()
file(GENERATE OUTPUT ${bundle_script} CONTENT "
set(program \"$<TARGET_FILE:dlbench>\")
set(objects \"${bundle_objects}\")
set(openblas \"${OPENBLAS_LIBRARY}\")
set(libdir \"${DLBENCH_LIBDIR}\")
set(docdir \"${CMAKE_INSTALL_DOCDIR}\")
include(\"${CMAKE_CURRENT_LIST_DIR}/bundle_libraries.cmake\")
")
install(SCRIPT ${bundle_script} COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME dlbench)
set(CPACK_PACKAGE_VENDOR dlbench)
string(TOLOWER ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} CPACK_SYSTEM_NAME)
set(CPACK_PACKAGE_FILE_NAME dlbench-${PROJECT_VERSION}-${CPACK_SYSTEM_NAME})
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENTS_ALL program development bundle)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
include(CPack)
