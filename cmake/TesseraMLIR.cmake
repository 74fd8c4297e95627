# Finds MLIR and sets what every library that includes it needs.
# The dylib targets MLIR and LLVM are linked, never static MLIRxxx targets beside them:
# two copies of a dialect have two TypeIDs.

find_package(MLIR 22.1 REQUIRED CONFIG)
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_LINK_LLVM_DYLIB ON)

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
# Also read by tablegen. The algebra and the runtime are added before this and do not get it.
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
find_program(MLIR_TABLEGEN_EXE mlir-tblgen HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)

# One precompiled header for all libraries that include MLIR: header parsing dominates the build.
add_library(TesseraPCH OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/cmake/pch.cpp)
target_compile_options(TesseraPCH PUBLIC $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
target_precompile_headers(TesseraPCH PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/cmake/pch.h)

# tessera_mlir_library(name SOURCES... [DEPENDS tablegen targets] [LINK libraries])
# A static library of the compiler, linked against the MLIR dylib.
function(tessera_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
  target_precompile_headers(${name} REUSE_FROM TesseraPCH)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# tessera_mlir_tool(name SOURCES... LINK libraries): an executable over the same headers.
function(tessera_mlir_tool name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  # The precompiled header is built with -fPIC; an executable's -fPIE would not match it.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
  target_precompile_headers(${name} REUSE_FROM TesseraPCH)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
endfunction()
