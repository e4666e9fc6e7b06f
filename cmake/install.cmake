# SPDX-License-Identifier: Apache-2.0
# Files that `make install` installs in a prefix, and that a wheel contains in its package directory. The layout is also that of
# Triton: lib/libtritonserver.so and backends/NAME/libtriton_NAME.so, so the library directory is "lib" on every system. Packages of a
# distribution set the directories below; all of them are relative to the prefix.
include(CMakePackageConfigHelpers)

set(root .)
set(component kelp)
if(SKBUILD)
  set(root kelp)
  set(component python)
endif()

# Files name other files relative to their own place, so that a prefix may be moved.
file(RELATIVE_PATH up_from_lib /p/${KELP_LIBDIR}/pkgconfig /p)
file(RELATIVE_PATH up_from_cmake /p/${KELP_LIBDIR}/cmake/kelp /p)
string(REGEX REPLACE "/$" "" up_from_lib "${up_from_lib}")
string(REGEX REPLACE "/$" "" up_from_cmake "${up_from_cmake}")

if(TARGET kelp_shared)
  if(SKBUILD)
    # A wheel has no symbolic links: the file has the name of the soname, and a linker script has the name that -lkelp finds.
    set_target_properties(kelp_shared PROPERTIES VERSION ${KELP_SOVERSION} INSTALL_RPATH "$ORIGIN")
    install(TARGETS kelp_shared LIBRARY DESTINATION ${root}/lib COMPONENT ${component} NAMELINK_SKIP)
    file(WRITE ${CMAKE_BINARY_DIR}/linker-script/libkelp.so "/* GNU ld script */\nINPUT(libkelp.so.${KELP_SOVERSION})\n")
    install(FILES ${CMAKE_BINARY_DIR}/linker-script/libkelp.so DESTINATION ${root}/lib COMPONENT ${component})
  else()
    install(TARGETS kelp_shared LIBRARY DESTINATION ${KELP_LIBDIR} COMPONENT ${component})
  endif()
  if(TARGET kelp_static)
    install(TARGETS kelp_static ARCHIVE DESTINATION ${KELP_LIBDIR} COMPONENT ${component})
  endif()
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/kelp DESTINATION ${root}/include COMPONENT ${component}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.inc")
endif()
if(TARGET tritonserver)
  if(KELP_SERVER_LIBDIR STREQUAL KELP_LIBDIR)
    set_target_properties(tritonserver PROPERTIES INSTALL_RPATH "$ORIGIN")
  else() # libkelp.so is in a directory of the system
    set_target_properties(tritonserver PROPERTIES INSTALL_RPATH "")
  endif()
  install(TARGETS tritonserver LIBRARY DESTINATION ${root}/${KELP_SERVER_LIBDIR} COMPONENT ${component})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/triton DESTINATION ${root}/include COMPONENT ${component}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()
if(TARGET kelp_backend)
  install(TARGETS kelp_backend ARCHIVE DESTINATION ${root}/${KELP_LIBDIR} COMPONENT ${component})
endif()
if(TARGET kelp_program)
  install(TARGETS kelp_program RUNTIME DESTINATION ${root}/bin COMPONENT ${component})
  if(NOT SKBUILD) # a wheel has no symbolic links, but `kelp tritonserver`
    install(FILES ${CMAKE_BINARY_DIR}/bin/tritonserver DESTINATION bin COMPONENT ${component})
  endif()
endif()
foreach(backend IN LISTS backends)
  get_filename_component(name ${backend} DIRECTORY)
  if(TARGET triton_${name})
    install(TARGETS triton_${name} LIBRARY DESTINATION ${root}/${KELP_BACKENDS_DIR}/${name} COMPONENT ${component})
    install(FILES ${CMAKE_SOURCE_DIR}/backends/${name}/config.pbtxt DESTINATION ${root}/${KELP_BACKENDS_DIR}/${name} COMPONENT ${component})
  endif()
endforeach()

# A program finds libtritonserver.so in a directory that is not of the system by its run path.
set(server_rpath "")
if(NOT KELP_SERVER_LIBDIR STREQUAL KELP_LIBDIR)
  set(server_rpath "-Wl,-rpath,${CMAKE_INSTALL_PREFIX}/${KELP_SERVER_LIBDIR} ")
endif()
foreach(package kelp tritonserver kelp-backend)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/${package}.pc.in ${CMAKE_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION ${root}/${KELP_LIBDIR}/pkgconfig COMPONENT ${component})
endforeach()
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kelp-config-version.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_SOURCE_DIR}/cmake/kelp-config.cmake.in ${CMAKE_BINARY_DIR}/kelp-config.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kelp-config.cmake ${CMAKE_BINARY_DIR}/kelp-config-version.cmake
  DESTINATION ${root}/${KELP_LIBDIR}/cmake/kelp COMPONENT ${component})

install(FILES ${CMAKE_SOURCE_DIR}/completions/kelp.bash DESTINATION ${root}/share/bash-completion/completions RENAME kelp
  COMPONENT ${component})
install(FILES ${CMAKE_SOURCE_DIR}/completions/kelp.zsh DESTINATION ${root}/share/zsh/site-functions RENAME _kelp COMPONENT ${component})
install(FILES ${CMAKE_SOURCE_DIR}/completions/kelp.fish DESTINATION ${root}/share/fish/vendor_completions.d COMPONENT ${component})
if(NOT SKBUILD)
  file(GLOB man_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.1)
  install(FILES ${man_pages} DESTINATION share/man/man1 COMPONENT ${component})
  file(GLOB documents CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
  install(FILES ${documents} ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
    ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/THIRD-PARTY-NOTICES.txt DESTINATION ${KELP_DOC_DIR} COMPONENT ${component})
endif()
