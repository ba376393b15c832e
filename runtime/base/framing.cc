#include "runtime/base/framing.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::base {

absl::Status WriteFrame(int fd, absl::string_view payload) {
  if (payload.size() > kMaxFrameBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("frame: limit is ", kMaxFrameBytes, " bytes, message has ", payload.size()));
  }
  char header[4];
  for (int i = 0; i < 4; ++i) header[i] = static_cast<char>(payload.size() >> (8 * i));
  FUSIOND_RETURN_IF_ERROR(WriteAll(fd, {header, sizeof(header)}));
  return WriteAll(fd, payload);
}

absl::StatusOr<std::string> ReadFrame(int fd, uint32_t max_bytes) {
  char header[4];
  FUSIOND_RETURN_IF_ERROR(ReadExactly(fd, header, sizeof(header)));
  uint32_t length = 0;
  for (int i = 0; i < 4; ++i) length |= uint32_t{static_cast<uint8_t>(header[i])} << (8 * i);
  if (length > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("frame: limit is ", max_bytes, " bytes, announced ", length));
  }
  std::string payload(length, '\0');
  absl::Status status = ReadExactly(fd, payload.data(), length);
  if (absl::IsOutOfRange(status)) return absl::DataLossError("end of stream inside a message");
  FUSIOND_RETURN_IF_ERROR(status);
  return payload;
}

}  // namespace fusiond::base
