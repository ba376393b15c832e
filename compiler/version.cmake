# cmake -DROOT=<source root> -DOUT=version.cc -P version.cmake: writes CompilerVersion(), the SHA-256
# over names and contents of every source under compiler/, sorted by name. A glob, where targets list
# their sources: a file that is not built must change the version rather than be forgotten.
file(GLOB_RECURSE files RELATIVE ${ROOT}
  ${ROOT}/compiler/*.cc ${ROOT}/compiler/*.h ${ROOT}/compiler/*.def ${ROOT}/compiler/*.cuh)
list(SORT files)
set(lines "")
foreach(file IN LISTS files)
  file(SHA256 ${ROOT}/${file} digest)
  string(APPEND lines "${file} ${digest}\n")
endforeach()
string(SHA256 version "${lines}")
set(text "// Made by compiler/version.cmake.\n#include \"compiler/compiler.h\"\n\n")
string(APPEND text "namespace fusiond::compiler {\n")
string(APPEND text "std::string CompilerVersion() { return \"${version}\"; }\n")
string(APPEND text "}  // namespace fusiond::compiler\n")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUT} "${text}")
endif()
