# SPDX-License-Identifier: Apache-2.0
# find_package(kelp) gives the targets kelp::kelp (the engine), kelp::tritonserver (the server's C API) and kelp::backend (the SDK
# that a backend is linked with), the function kelp_add_backend, KELP_BACKENDS_DIR, the folder of backends that belongs to them, and
# KELP_PROGRAM, the program.
get_filename_component(_kelp_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(KELP_BACKENDS_DIR "${_kelp_prefix}/backends")
set(KELP_PROGRAM "${_kelp_prefix}/bin/kelp")
foreach(_kelp_name kelp tritonserver)
  if(NOT TARGET kelp::${_kelp_name})
    add_library(kelp::${_kelp_name} SHARED IMPORTED)
    set_target_properties(kelp::${_kelp_name} PROPERTIES
      IMPORTED_LOCATION "${_kelp_prefix}/lib/lib${_kelp_name}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${_kelp_prefix}/include")
  endif()
endforeach()
# libtritonserver.so stands on libkelp.so, which a linker wants to see.
set_target_properties(kelp::kelp PROPERTIES IMPORTED_SONAME "libkelp.so.0")
set_target_properties(kelp::tritonserver PROPERTIES IMPORTED_SONAME "libtritonserver.so"
  IMPORTED_LINK_DEPENDENT_LIBRARIES kelp::kelp)
if(NOT TARGET kelp::backend)
  add_library(kelp::backend STATIC IMPORTED)
  set_target_properties(kelp::backend PROPERTIES
    IMPORTED_LOCATION "${_kelp_prefix}/lib/libkelp_backend.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_kelp_prefix}/include"
    INTERFACE_LINK_LIBRARIES kelp::tritonserver)
endif()

# kelp_add_backend(NAME SOURCES file…): the target triton_NAME, a backend libtriton_NAME.so built on the SDK.
function(kelp_add_backend name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_library(triton_${name} MODULE ${ARG_SOURCES})
  target_link_libraries(triton_${name} PRIVATE kelp::backend)
  target_link_options(triton_${name} PRIVATE -Wl,--no-undefined -Wl,--gc-sections)
  # Nothing but the entry points is visible. The server that loads it is in the process already: a path to libraries would bring
  # a second one into another server.
  set_target_properties(triton_${name} PROPERTIES
    C_STANDARD 17 C_STANDARD_REQUIRED TRUE C_VISIBILITY_PRESET hidden SKIP_BUILD_RPATH TRUE)
endfunction()

# kelp_add_plugin(NAME SOURCES file…): the target NAME, a plug-in or kernel library libNAME.so. It is linked with nothing: the process
# that loads it provides Kelp's functions.
function(kelp_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:kelp::kelp,INTERFACE_INCLUDE_DIRECTORIES>)
  set_target_properties(${name} PROPERTIES
    C_STANDARD 17 C_STANDARD_REQUIRED TRUE CXX_STANDARD 17 C_VISIBILITY_PRESET hidden SKIP_BUILD_RPATH TRUE)
endfunction()
unset(_kelp_prefix)
unset(_kelp_name)
