// SlotTable<T>: objects of one session under handles of slot and generation.
//
// A handle stays invalid for ever once its object is removed: the generation changes with each
// reuse, and a slot whose generations are used up is retired. Handles come from the peer, so every
// look-up accepts any value.
//
// Thread-safety: thread-compatible. Cost: O(1).
#ifndef FUSIOND_RUNTIME_CHANNEL_SLOT_TABLE_H_
#define FUSIOND_RUNTIME_CHANNEL_SLOT_TABLE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/channel/layout.h"

namespace fusiond::channel {

template <typename T>
class SlotTable {
 public:
  // `what` names the objects in errors ("buffers"); it must outlive the table.
  SlotTable(absl::string_view what, uint32_t max_objects)
      : what_(what), max_objects_(max_objects) {}

  // OK when one more object has room.
  absl::Status CheckRoom() const {
    if (used_ < max_objects_) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat(what_, " of a session: limit is ", max_objects_, ", are ", used_ + 1));
  }

  absl::StatusOr<Handle> Insert(T object) {
    if (absl::Status room = CheckRoom(); !room.ok()) return room;
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const uint32_t at = free_.back();
    free_.pop_back();
    slots_[at].object = std::move(object);
    ++used_;
    return Handle{at, slots_[at].generation};
  }

  // Null when the handle names nothing (any more).
  T* Find(Handle handle) {
    if (handle.slot >= slots_.size()) return nullptr;
    Slot& slot = slots_[handle.slot];
    if (!slot.object.has_value() || slot.generation != handle.generation) return nullptr;
    return &*slot.object;
  }

  // Takes the object out; none when the handle names nothing.
  std::optional<T> Remove(Handle handle) {
    if (Find(handle) == nullptr) return std::nullopt;
    Slot& slot = slots_[handle.slot];
    std::optional<T> object = std::exchange(slot.object, std::nullopt);
    --used_;
    if (slot.generation != std::numeric_limits<uint32_t>::max()) {
      ++slot.generation;
      free_.push_back(handle.slot);
    }
    return object;
  }

  uint32_t size() const { return used_; }

 private:
  struct Slot {
    std::optional<T> object;
    uint32_t generation = 1;
  };

  const absl::string_view what_;
  const uint32_t max_objects_;
  uint32_t used_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_SLOT_TABLE_H_
