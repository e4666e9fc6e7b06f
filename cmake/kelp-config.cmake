# SPDX-License-Identifier: Apache-2.0
# find_package(kelp) gives the targets kelp::kelp (the engine) and kelp::tritonserver (the server's C API), and
# KELP_BACKENDS_DIR, the folder of backends that belongs to them.
get_filename_component(_kelp_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(KELP_BACKENDS_DIR "${_kelp_prefix}/backends")
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
unset(_kelp_prefix)
unset(_kelp_name)
