# SPDX-License-Identifier: Apache-2.0
# The build of a wheel (scripts/wheel.sh), for x86-64 or arm64 with an older glibc than that of the machine that builds. gcc compiles,
# because the kernels are tuned for it, with the headers of that glibc, which zig contains; zig links with its symbols. A function of a
# later glibc is an error of the compiler or of the linker.
#   KELP_WHEEL_ARCH   x86_64 or aarch64
#   KELP_WHEEL_GLIBC  the oldest glibc, as 2.27
#   KELP_WHEEL_ZIG    the directory of PyPI's package ziglang
#   KELP_WHEEL_DEPS   include/ and lib/ with xxHash, zlib, nghttp2 and libffi; the last three as static libraries
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KELP_WHEEL_ARCH KELP_WHEEL_GLIBC KELP_WHEEL_ZIG KELP_WHEEL_DEPS)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${KELP_WHEEL_ARCH})
set(CMAKE_C_COMPILER ${KELP_WHEEL_ARCH}-linux-gnu-gcc)

set(kelp_family x86)
if(KELP_WHEEL_ARCH STREQUAL "aarch64")
  set(kelp_family aarch64)
endif()
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=include OUTPUT_VARIABLE kelp_gcc_include OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-libgcc-file-name OUTPUT_VARIABLE kelp_libgcc OUTPUT_STRIP_TRAILING_WHITESPACE)
# pyproject.toml sets CMAKE_C_FLAGS.
set(CMAKE_TRY_COMPILE_CONFIGURATION Release)
string(REPLACE "2." "" kelp_glibc_minor "${KELP_WHEEL_GLIBC}")
set(CMAKE_C_FLAGS_RELEASE_INIT "-nostdinc -D__GLIBC_MINOR__=${kelp_glibc_minor} -isystem ${KELP_WHEEL_DEPS}/include -isystem ${kelp_gcc_include}")
foreach(directory ${kelp_family}-linux-gnu generic-glibc ${kelp_family}-linux-any any-linux-any)
  string(APPEND CMAKE_C_FLAGS_RELEASE_INIT " -isystem ${KELP_WHEEL_ZIG}/lib/libc/include/${directory}")
endforeach()

# exports.map lists functions that backends define; lld rejects such names without the option.
set(kelp_link "${KELP_WHEEL_ZIG}/zig cc -target ${KELP_WHEEL_ARCH}-linux-gnu.${KELP_WHEEL_GLIBC} -s -Wl,--undefined-version <LINK_FLAGS>")
set(CMAKE_C_LINK_EXECUTABLE "${kelp_link} <OBJECTS> -o <TARGET> <LINK_LIBRARIES> ${kelp_libgcc}")
set(CMAKE_C_CREATE_SHARED_LIBRARY
  "${kelp_link} -shared <SONAME_FLAG><TARGET_SONAME> -o <TARGET> <OBJECTS> <LINK_LIBRARIES> ${kelp_libgcc}")
set(CMAKE_C_CREATE_SHARED_MODULE "${CMAKE_C_CREATE_SHARED_LIBRARY}")

set(KELP_FFI_INCLUDE ${KELP_WHEEL_DEPS}/include)
set(KELP_FFI_LIBRARY ${KELP_WHEEL_DEPS}/lib/libffi.a)
set(ZLIB_INCLUDE_DIR ${KELP_WHEEL_DEPS}/include)
set(ZLIB_LIBRARY ${KELP_WHEEL_DEPS}/lib/libz.a)
set(NGHTTP2_INCLUDE_DIR ${KELP_WHEEL_DEPS}/include)
set(NGHTTP2_LIBRARY ${KELP_WHEEL_DEPS}/lib/libnghttp2.a)
# Programs and Python's headers are those of the machine that builds.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
