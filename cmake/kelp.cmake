# SPDX-License-Identifier: Apache-2.0
# Functions that declare modules, tests and fuzzers.
find_package(Threads REQUIRED)

add_library(kelp_flags INTERFACE)
target_compile_definitions(kelp_flags INTERFACE _GNU_SOURCE)
target_include_directories(kelp_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_compile_options(kelp_flags INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wvla -Wundef -Wformat=2
  -Wimplicit-fallthrough -Wwrite-strings -fno-strict-aliasing -fno-math-errno -fno-trapping-math
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(kelp_flags INTERFACE -ffunction-sections -fdata-sections -fno-semantic-interposition)
  target_link_options(kelp_flags INTERFACE -Wl,--gc-sections -Wl,-O1)
endif()
target_link_libraries(kelp_flags INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
# Hardening of what is installed, as far as the compiler knows the options: stack protector, fortified libc functions, control-flow
# protection, and relocations that are read-only from the start.
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported()
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT KELP_SANITIZE)
  foreach(flag -fstack-protector-strong -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "KELP_HAS${flag}" has)
    check_c_compiler_flag("-Werror ${flag}" ${has})
    if(${has})
      target_compile_options(kelp_flags INTERFACE ${flag})
    endif()
  endforeach()
  # With fortified functions, the C library warns about each ignored result, also where it is meant. Other builds check Kelp's own
  # functions.
  target_compile_options(kelp_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -Wno-unused-result)
  target_link_options(kelp_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
if(KELP_SANITIZE)
  target_compile_options(kelp_flags INTERFACE -fsanitize=${KELP_SANITIZE} -fno-omit-frame-pointer -g -fno-sanitize-recover=undefined)
  target_link_options(kelp_flags INTERFACE -fsanitize=${KELP_SANITIZE})
endif()
if(KELP_FUZZ)
  target_compile_options(kelp_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(kelp_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# kelp_module(NAME SOURCES … [DEPENDS modules…] [LIBS libraries…]): a static library kelp_NAME.
function(kelp_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBS" ${ARGN})
  add_library(kelp_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(kelp_${name} PUBLIC kelp_flags ${ARG_LIBS})
  foreach(module IN LISTS ARG_DEPENDS)
    target_link_libraries(kelp_${name} PUBLIC kelp_${module})
  endforeach()
endfunction()

# kelp_test(NAME SOURCES … [LIBS …] [ARGS …] [ENV …]): a cmocka program, registered with CTest as NAME.
function(kelp_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;ARGS;ENV" ${ARGN})
  string(REPLACE "." "_" target test_${name})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} kelp_flags cmocka)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${target} PRIVATE KELP_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data"
    KELP_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${target} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  if(ARG_ENV)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${ARG_ENV}")
  endif()
endfunction()

# All fuzzers, without the tests and examples beside them.
add_custom_target(fuzzers)

# kelp_tested(TARGET VARIABLE): the file by which a test that runs on this machine starts the program TARGET. Of a build for another
# machine that is a script that hands the program to the emulator.
function(kelp_tested target variable)
  set(file $<TARGET_FILE:${target}>)
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    set(file ${CMAKE_BINARY_DIR}/emulated/$<TARGET_FILE_NAME:${target}>)
    get_property(generated GLOBAL PROPERTY kelp_emulated_${target})
    if(NOT generated)
      set_property(GLOBAL PROPERTY kelp_emulated_${target} TRUE)
      file(GENERATE OUTPUT ${file}
        CONTENT "#!/bin/sh\nexec ${CMAKE_CROSSCOMPILING_EMULATOR} '$<TARGET_FILE:${target}>' \"$@\"\n"
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
    endif()
  endif()
  set(${variable} ${file} PARENT_SCOPE)
endfunction()

# kelp_emulated_compiler(): cc and gcc beside those scripts, for tests that compile programs and start them.
function(kelp_emulated_compiler)
  foreach(name cc gcc)
    file(WRITE ${CMAKE_BINARY_DIR}/emulated/${name}
      "#!/bin/sh\nexec '${CMAKE_SOURCE_DIR}/tests/support/emulated_cc.sh' ${CMAKE_CROSSCOMPILING_EMULATOR} ${CMAKE_C_COMPILER} \"$@\"\n")
    file(CHMOD ${CMAKE_BINARY_DIR}/emulated/${name} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  endforeach()
endfunction()

# kelp_fuzzer(NAME SOURCES … [LIBS …]): libFuzzer program with KELP_FUZZ, else a replay of tests/fuzz/corpus/NAME.
function(kelp_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(fuzz_${name} ${ARG_SOURCES})
  add_dependencies(fuzzers fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_LIBS} kelp_flags)
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_options(fuzz_${name} PRIVATE -Wno-missing-prototypes)
  if(KELP_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/replay_main.c)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 300)
  endif()
endfunction()
