#include "runtime/channel/slot_table.h"

#include <memory>

#include "tests/support/status_matchers.h"

namespace fusiond::channel {
namespace {

using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

TEST(SlotTableTest, F36_ReusedSlotHasANewName) {
  SlotTable<int> table("things", 4);
  ASSERT_OK_AND_ASSIGN(Handle first, table.Insert(1));
  EXPECT_EQ(*table.Find(first), 1);
  EXPECT_EQ(table.Remove(first), 1);
  ASSERT_OK_AND_ASSIGN(Handle second, table.Insert(2));
  EXPECT_EQ(second.slot, first.slot);
  EXPECT_NE(second.generation, first.generation);
  EXPECT_EQ(table.Find(first), nullptr);
  EXPECT_EQ(table.Remove(first), std::nullopt);
  EXPECT_EQ(*table.Find(second), 2);
}

TEST(SlotTableTest, AnyHandleMayBeLookedUp) {
  SlotTable<int> table("things", 4);
  ASSERT_OK_AND_ASSIGN(Handle handle, table.Insert(1));
  for (Handle h : {Handle{0, 0}, Handle{1, 1}, Handle{~0u, ~0u}, Handle{handle.slot, 2}}) {
    EXPECT_EQ(table.Find(h), nullptr);
  }
}

TEST(SlotTableTest, LimitIsNamed) {
  SlotTable<std::unique_ptr<int>> table("things", 1);
  ASSERT_OK_AND_ASSIGN(Handle handle, table.Insert(std::make_unique<int>(5)));
  EXPECT_THAT(table.Insert(nullptr).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("things of a session: limit is 1, are 2")));
  EXPECT_EQ(**table.Remove(handle), 5);
  EXPECT_TRUE(table.Insert(nullptr).ok());
}

}  // namespace
}  // namespace fusiond::channel
