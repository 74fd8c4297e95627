# Writes a header with the digest of the kernel compiler's sources, so that objects cached by another
# revision are not reused: cmake -DSOURCES=... -DOUTPUT=... -P WriteRevision.cmake
set(all "")
foreach(source ${SOURCES})
  file(SHA256 ${source} digest)
  string(APPEND all ${digest})
endforeach()
string(SHA256 revision "${all}")
file(WRITE ${OUTPUT} "#define TESSERA_KERNEL_REVISION \"${revision}\"\n")
