# Compiler flags shared by everything that we compile.

if(TESSERA_ASSERTIONS)
  # The packaged LLVM has assertions off; ours stay on in every build type.
  foreach(config RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_${config} "${CMAKE_CXX_FLAGS_${config}}")
  endforeach()
  add_compile_options(-UNDEBUG)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-deprecated-declarations -fdiagnostics-color=auto)

find_program(TESSERA_CCACHE ccache)
if(TESSERA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${TESSERA_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TESSERA_CCACHE})
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # ccache can only reuse objects built with a PCH when the PCH carries no timestamp.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-instantiate-templates>)
  add_compile_options("SHELL:$<$<COMPILE_LANGUAGE:CXX>:-Xclang -fno-pch-timestamp>")
endif()

find_program(TESSERA_LLD NAMES ld.lld-22 ld.lld)
# The cache of artifacts is keyed by the build ids of the compiler's objects.
add_link_options(LINKER:--build-id=sha1)
if(TESSERA_LLD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(--ld-path=${TESSERA_LLD})
endif()
