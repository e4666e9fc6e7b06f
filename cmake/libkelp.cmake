# SPDX-License-Identifier: Apache-2.0
# libkelp.so: every module below the server, one library without global state.
# Before 1.0 a minor version may change interfaces, and its number is a part of the soname. Symbols have no versions.
set(KELP_SOVERSION ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(KELP_SOVERSION 0.${PROJECT_VERSION_MINOR})
endif()
if(TARGET kelp_root AND NOT TARGET kelp_shared)
  add_library(kelp_shared SHARED ${CMAKE_SOURCE_DIR}/cmake/empty.c)
  set_target_properties(kelp_shared PROPERTIES OUTPUT_NAME kelp VERSION ${PROJECT_VERSION} SOVERSION ${KELP_SOVERSION})
  target_link_libraries(kelp_shared PRIVATE kelp_flags
    -Wl,--whole-archive kelp_root kelp_cpu kelp_cuda kelp_null kelp_onnxruntime kelp_remote kelp_tensorrt kelp_plugins
    kelp_builder kelp_engine kelp_runtime kelp_graph kelp_tokenizer kelp_onnx kelp_signature kelp_tensor kelp_base
    -Wl,--no-whole-archive)
  target_include_directories(kelp_shared PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
  # Sanitizers live in the program, so that a library has symbols left open.
  if(NOT KELP_SANITIZE AND NOT KELP_FUZZ)
    target_link_options(kelp_shared PRIVATE -Wl,--no-undefined)
  endif()
endif()
