# cmake -DOUT=x.cc -DSYMBOL=ns::kName -DFILES=a;b -P embed.cmake: writes a C++ file that holds the
# texts of FILES, in that order, as fusiond::device::SYMBOL[] and SYMBOLCount.
set(text "// Made by compiler/device/embed.cmake.\n#include \"compiler/device/device_text.h\"\n\n")
string(APPEND text "namespace fusiond::device {\nextern const DeviceFile ${SYMBOL}[] = {\n")
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME)
  file(READ "${path}" body)
  string(APPEND text "{\"${name}\", R\"device(${body})device\"},\n")
endforeach()
list(LENGTH FILES count)
string(APPEND text "};\nextern const int ${SYMBOL}Count = ${count};\n}  // namespace fusiond::device\n")
file(WRITE "${OUT}" "${text}")
