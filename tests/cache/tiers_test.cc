#include "server/cache/tiers.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "tests/cache/fake_store.h"
#include "tests/support/status_matchers.h"

namespace fusiond::cache {
namespace {

using ::fusiond::testing::IsOk;

// Something happens after a record has been read and before the reader has it.
class RacingStore : public FakeStore {
 public:
  using FakeStore::FakeStore;
  absl::StatusOr<Record> Get(const RecordKey& key) override {
    absl::StatusOr<Record> record = FakeStore::Get(key);
    if (auto happens = std::exchange(meanwhile, nullptr)) happens();
    return record;
  }

  std::function<void()> meanwhile;
};

class TiersTest : public ::testing::Test {
 protected:
  static std::vector<NewRecord> Records(const std::string& material, const std::string& payload) {
    return {{Key(), std::make_shared<const Record>(Record{material, payload})}};
  }
  static RecordKey Key() { return RecordKey::Of(RequestKey{base::Sha256("request")}); }

  FakeDisk disk_;
  RacingStore store_{&disk_};
  const std::string material_ = "asked for";
};

TEST_F(TiersTest, F12_RecordOfOtherMaterialInMemoryIsAMiss) {
  Tiers memory_alone(1 << 20, nullptr);
  ASSERT_FALSE(memory_alone.Put(Records("another", "answer")));
  EXPECT_EQ(memory_alone.Find(Key(), &material_).record, nullptr);
  const std::string another = "another";
  EXPECT_NE(memory_alone.Find(Key(), &another).record, nullptr);
}

TEST_F(TiersTest, WhatIsDeletedWhileItIsReadIsNotKept) {
  ASSERT_TRUE(Tiers(1 << 20, &store_).Put(Records(material_, "old")));
  Tiers tiers(1 << 20, &store_);
  const RecordKey key = Key();
  store_.meanwhile = [&] { EXPECT_THAT(tiers.Delete({&key, 1}), IsOk()); };
  EXPECT_EQ(tiers.Find(key, &material_).record->payload, "old");  // as it was when it was read
  EXPECT_EQ(tiers.Find(key, &material_).record, nullptr);
}

TEST_F(TiersTest, WhatIsReplacedWhileItIsReadStaysReplaced) {
  ASSERT_TRUE(Tiers(1 << 20, &store_).Put(Records(material_, "old")));
  Tiers tiers(1 << 20, &store_);
  store_.meanwhile = [&] { EXPECT_TRUE(tiers.Put(Records(material_, "new"))); };
  EXPECT_EQ(tiers.Find(Key(), &material_).record->payload, "old");
  EXPECT_EQ(tiers.Find(Key(), &material_).record->payload, "new");
}

}  // namespace
}  // namespace fusiond::cache
