#include "runtime/base/framing.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::base {
namespace {

constexpr size_t kHeaderBytes = 4;

absl::StatusOr<std::string> EncodeHeader(size_t payload_bytes) {
  if (payload_bytes > kMaxFrameBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("frame: limit is ", kMaxFrameBytes, " bytes, message has ", payload_bytes));
  }
  std::string header(kHeaderBytes, '\0');
  for (size_t i = 0; i < kHeaderBytes; ++i) header[i] = static_cast<char>(payload_bytes >> (8 * i));
  return header;
}

absl::StatusOr<uint32_t> DecodeHeader(const char* header, uint32_t max_bytes) {
  uint32_t length = 0;
  for (size_t i = 0; i < kHeaderBytes; ++i) {
    length |= uint32_t{static_cast<uint8_t>(header[i])} << (8 * i);
  }
  if (length > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("frame: limit is ", max_bytes, " bytes, announced ", length));
  }
  return length;
}

}  // namespace

absl::Status WriteFrame(int fd, absl::string_view payload) {
  FUSIOND_ASSIGN_OR_RETURN(std::string header, EncodeHeader(payload.size()));
  FUSIOND_RETURN_IF_ERROR(WriteAll(fd, header));
  return WriteAll(fd, payload);
}

absl::StatusOr<std::string> ReadFrame(int fd, uint32_t max_bytes) {
  char header[kHeaderBytes];
  FUSIOND_RETURN_IF_ERROR(ReadExactly(fd, header, sizeof(header)));
  FUSIOND_ASSIGN_OR_RETURN(uint32_t length, DecodeHeader(header, max_bytes));
  std::string payload(length, '\0');
  absl::Status status = ReadExactly(fd, payload.data(), length);
  if (absl::IsOutOfRange(status)) return absl::DataLossError("end of stream inside a message");
  FUSIOND_RETURN_IF_ERROR(status);
  return payload;
}

absl::StatusOr<std::string> EncodeFrame(absl::string_view payload) {
  FUSIOND_ASSIGN_OR_RETURN(std::string frame, EncodeHeader(payload.size()));
  absl::StrAppend(&frame, payload);
  return frame;
}

absl::StatusOr<std::optional<std::string>> FrameDecoder::Next() {
  if (buffer_.size() < kHeaderBytes) return std::nullopt;
  FUSIOND_ASSIGN_OR_RETURN(uint32_t length, DecodeHeader(buffer_.data(), max_bytes_));
  if (buffer_.size() - kHeaderBytes < length) return std::nullopt;
  std::string payload = buffer_.substr(kHeaderBytes, length);
  buffer_.erase(0, kHeaderBytes + length);
  return payload;
}

}  // namespace fusiond::base
