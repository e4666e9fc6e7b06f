# SPDX-License-Identifier: Apache-2.0
# Installs the list of installed files, relative to the prefix, which `make uninstall` reads. Included last.
if(NOT SKBUILD)
  install(CODE "set(kelp_list ${KELP_DOC_DIR}/installed-files.txt)" COMPONENT kelp)
  install(CODE [[
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_PREFIX}/${kelp_list})
    set(kelp_files ${CMAKE_INSTALL_MANIFEST_FILES})
    list(TRANSFORM kelp_files REPLACE "^${CMAKE_INSTALL_PREFIX}/" "")
    list(SORT kelp_files)
    list(JOIN kelp_files "\n" kelp_text)
    file(WRITE $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${kelp_list} "${kelp_text}\n")
  ]] COMPONENT kelp)
endif()
