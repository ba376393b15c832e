#include "runtime/channel/region.h"

#include <fcntl.h>

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"

namespace fusiond::channel {
namespace {

constexpr uint32_t kSlabUnit = 4096;

uint32_t SlabOffset(const RingGeometry& geometry) {
  return kControlPageBytes + geometry.entries * static_cast<uint32_t>(sizeof(SubmissionEntry));
}

RegionHeader MakeHeader(uint64_t magic, const RingGeometry& geometry, uint64_t epoch,
                        uint64_t features) {
  RegionHeader header{};
  const bool is_a = magic == kRegionMagicA;
  header.magic = magic;
  header.abi_major = kAbiMajor;
  header.abi_minor = kAbiMinor;
  header.header_bytes = sizeof(RegionHeader);
  header.epoch = epoch;
  header.features = features;
  header.control_bytes = is_a ? sizeof(ClientControl) : sizeof(WorkerControl);
  header.submission_entry_bytes = sizeof(SubmissionEntry);
  header.completion_entry_bytes = sizeof(CompletionEntry);
  header.tensor_argument_bytes = sizeof(TensorArgument);
  header.ring_entries = geometry.entries;
  header.ring_offset = kControlPageBytes;
  header.slab_offset = is_a ? SlabOffset(geometry) : 0;
  header.slab_bytes = is_a ? geometry.slab_bytes : 0;
  header.region_bytes = is_a ? RegionABytes(geometry) : RegionBBytes(geometry);
  return header;
}

// Compares what the worker wrote with what this build would have written. The minor version and the
// features were agreed in HELLO and are not looked at here.
absl::Status CheckHeader(const RegionHeader& found, const RegionHeader& expected,
                         absl::string_view region) {
  if (found.magic != expected.magic) {
    return absl::FailedPreconditionError(absl::StrCat("region ", region, ": wrong magic"));
  }
  if (found.abi_major != expected.abi_major) {
    return absl::FailedPreconditionError(
        absl::StrCat("region ", region, ": channel ABI ", found.abi_major, ".", found.abi_minor,
                     ", this client has ", kAbiMajor, ".", kAbiMinor));
  }
  const struct {
    absl::string_view name;
    uint64_t found, expected;
  } fields[] = {
      {"header bytes", found.header_bytes, expected.header_bytes},
      {"control bytes", found.control_bytes, expected.control_bytes},
      {"submission entry bytes", found.submission_entry_bytes, expected.submission_entry_bytes},
      {"completion entry bytes", found.completion_entry_bytes, expected.completion_entry_bytes},
      {"tensor argument bytes", found.tensor_argument_bytes, expected.tensor_argument_bytes},
      {"ring entries", found.ring_entries, expected.ring_entries},
      {"ring offset", found.ring_offset, expected.ring_offset},
      {"slab offset", found.slab_offset, expected.slab_offset},
      {"slab bytes", found.slab_bytes, expected.slab_bytes},
      {"region bytes", found.region_bytes, expected.region_bytes},
  };
  for (const auto& field : fields) {
    if (field.found == field.expected) continue;
    return absl::FailedPreconditionError(absl::StrCat("region ", region, ": ", field.name, " is ",
                                                      field.found, ", this client expects ",
                                                      field.expected));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGeometry(const RingGeometry& geometry) {
  const uint32_t entries = geometry.entries;
  if (entries < 2 || entries > kMaxRingEntries || (entries & (entries - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("ring: entries must be a power of two in [2, ",
                                                   kMaxRingEntries, "], got ", entries));
  }
  const uint32_t slab = geometry.slab_bytes;
  if (slab == 0 || slab > kMaxSlabBytes || slab % kSlabUnit != 0) {
    return absl::InvalidArgumentError(absl::StrCat("ring: slab bytes must be a multiple of ",
                                                   kSlabUnit, " in [", kSlabUnit, ", ",
                                                   kMaxSlabBytes, "], got ", slab));
  }
  return absl::OkStatus();
}

size_t RegionABytes(const RingGeometry& geometry) {
  return size_t{SlabOffset(geometry)} + geometry.slab_bytes;
}

size_t RegionBBytes(const RingGeometry& geometry) {
  return kControlPageBytes + size_t{geometry.entries} * sizeof(CompletionEntry);
}

RegionA FormatRegionA(char* memory, const RingGeometry& geometry, uint64_t epoch,
                      uint64_t features) {
  auto* control = new (memory) ClientControl();
  control->header = MakeHeader(kRegionMagicA, geometry, epoch, features);
  // relaxed, here and below: the client maps the region only after a message that is sent later.
  control->submission_tail.value.store(kFirstIndex, std::memory_order_relaxed);
  control->completion_head.value.store(kFirstIndex, std::memory_order_relaxed);
  return {control, reinterpret_cast<SubmissionEntry*>(memory + kControlPageBytes),
          memory + SlabOffset(geometry)};
}

RegionB FormatRegionB(char* memory, const RingGeometry& geometry, uint64_t epoch,
                      uint64_t features) {
  auto* control = new (memory) WorkerControl();
  control->header = MakeHeader(kRegionMagicB, geometry, epoch, features);
  control->submission_head.value.store(kFirstIndex, std::memory_order_relaxed);
  control->completion_tail.value.store(kFirstIndex, std::memory_order_relaxed);
  control->state.value.store(static_cast<uint32_t>(WorkerState::kServing),
                             std::memory_order_relaxed);
  return {control, reinterpret_cast<CompletionEntry*>(memory + kControlPageBytes)};
}

absl::StatusOr<WorkerRegions> CreateRegions(const RingGeometry& geometry, uint64_t epoch,
                                            uint64_t features) {
  FUSIOND_RETURN_IF_ERROR(CheckGeometry(geometry));
  FUSIOND_ASSIGN_OR_RETURN(base::SharedMemory memory_a,
                           base::CreatePeerWritable("fusiond-ring-a", RegionABytes(geometry)));
  FUSIOND_ASSIGN_OR_RETURN(base::SharedMemory memory_b,
                           base::CreateOwnerWritable("fusiond-ring-b", RegionBBytes(geometry)));
  RegionA a = FormatRegionA(memory_a.mapping.data(), geometry, epoch, features);
  RegionB b = FormatRegionB(memory_b.mapping.data(), geometry, epoch, features);
  return WorkerRegions{std::move(memory_a), std::move(memory_b), a, b};
}

absl::StatusOr<ClientRegions> MapRegions(int fd_a, int fd_b, const RingGeometry& geometry) {
  FUSIOND_RETURN_IF_ERROR(CheckGeometry(geometry));
  constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  const size_t bytes_a = RegionABytes(geometry);
  const size_t bytes_b = RegionBBytes(geometry);
  FUSIOND_RETURN_IF_ERROR(base::CheckSeals(fd_a, kSizeSeals, bytes_a).status());
  FUSIOND_RETURN_IF_ERROR(base::CheckSeals(fd_b, kSizeSeals, bytes_b).status());
  ClientRegions regions;
  FUSIOND_ASSIGN_OR_RETURN(regions.mapping_a, base::Mapping::Map(fd_a, bytes_a, true));
  FUSIOND_ASSIGN_OR_RETURN(regions.mapping_b, base::Mapping::Map(fd_b, bytes_b, false));
  char* a = regions.mapping_a.data();
  const char* b = regions.mapping_b.data();
  regions.a = {reinterpret_cast<ClientControl*>(a),
               reinterpret_cast<SubmissionEntry*>(a + kControlPageBytes), a + SlabOffset(geometry)};
  regions.b = {reinterpret_cast<const WorkerControl*>(b),
               reinterpret_cast<const CompletionEntry*>(b + kControlPageBytes)};
  FUSIOND_RETURN_IF_ERROR(
      CheckHeader(regions.a.control->header, MakeHeader(kRegionMagicA, geometry, 0, 0), "A"));
  FUSIOND_RETURN_IF_ERROR(
      CheckHeader(regions.b.control->header, MakeHeader(kRegionMagicB, geometry, 0, 0), "B"));
  regions.epoch = regions.b.control->header.epoch;
  return regions;
}

}  // namespace fusiond::channel
