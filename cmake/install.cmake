# SPDX-License-Identifier: Apache-2.0
# What `make install` puts under a prefix. The layout is also that of a Triton directory: lib/libtritonserver.so and
# backends/NAME/libtriton_NAME.so, so the library folder is plain "lib" on every system.
include(CMakePackageConfigHelpers)

if(TARGET kelp_shared)
  install(TARGETS kelp_shared LIBRARY DESTINATION lib)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/kelp DESTINATION include
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.inc")
endif()
if(TARGET tritonserver)
  set_target_properties(tritonserver PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS tritonserver LIBRARY DESTINATION lib)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/triton DESTINATION include FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()
if(TARGET kelp_backend)
  install(TARGETS kelp_backend ARCHIVE DESTINATION lib)
endif()
if(TARGET kelp_program)
  install(TARGETS kelp_program RUNTIME DESTINATION bin)
endif()
foreach(backend IN LISTS backends)
  get_filename_component(name ${backend} DIRECTORY)
  if(TARGET triton_${name})
    install(TARGETS triton_${name} LIBRARY DESTINATION backends/${name})
    install(FILES ${CMAKE_SOURCE_DIR}/backends/${name}/config.pbtxt DESTINATION backends/${name})
  endif()
endforeach()

# Found from where they lie, so that a prefix may be moved.
foreach(package kelp tritonserver kelp-backend)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/${package}.pc.in ${CMAKE_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION lib/pkgconfig)
endforeach()
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kelp-config-version.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/kelp-config.cmake ${CMAKE_BINARY_DIR}/kelp-config-version.cmake
  DESTINATION lib/cmake/kelp)

file(GLOB man_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.1)
install(FILES ${man_pages} DESTINATION share/man/man1)
install(FILES ${CMAKE_SOURCE_DIR}/completions/kelp.bash DESTINATION share/bash-completion/completions RENAME kelp)
install(FILES ${CMAKE_SOURCE_DIR}/completions/kelp.zsh DESTINATION share/zsh/site-functions RENAME _kelp)
install(FILES ${CMAKE_SOURCE_DIR}/completions/kelp.fish DESTINATION share/fish/vendor_completions.d)
file(GLOB documents CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES ${documents} ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
  ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/doc/kelp)
