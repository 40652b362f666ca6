#include "h2d/device/fake/internal/shadow.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace h2d::fake_internal {
namespace {

// Two stream lanes, 1 and 2; what an access knows of the other lane is said by each test.
class ShadowTest : public testing::Test, protected ConflictSink {
 protected:
  void Touch(uint64_t begin, uint64_t end, LaneIndex lane, bool writes,
             uint32_t knows_of_other = 0) {
    Clock before;
    before.Set(lane, next_[lane]);
    before.Set(3 - lane, knows_of_other);
    auto access = std::make_shared<Access>();
    access->epoch = {lane, ++next_[lane]};
    const Order order{&before, &before, {}};
    writes ? shadow_.Write(begin, end, access, order, *this)
           : shadow_.Read(begin, end, access, order, *this);
  }
  void Write(uint64_t begin, uint64_t end, LaneIndex lane, uint32_t knows = 0) {
    Touch(begin, end, lane, true, knows);
  }
  void Read(uint64_t begin, uint64_t end, LaneIndex lane, uint32_t knows = 0) {
    Touch(begin, end, lane, false, knows);
  }
  uint32_t TimeOf(LaneIndex lane) const { return next_[lane]; }
  // What was found since the last call: "[begin,end)" each.
  std::string Found() { return std::exchange(found_, ""); }

  Shadow shadow_;

 private:
  void OnConflict(const AccessRef&, const AccessRef&, bool, bool, uint64_t begin,
                  uint64_t end) override {
    found_ += "[" + std::to_string(begin) + "," + std::to_string(end) + ")";
  }

  uint32_t next_[3] = {};
  std::string found_;
};

TEST_F(ShadowTest, UnorderedWritesConflictWhereTheyOverlap) {
  Write(0, 10, 1);
  Write(10, 20, 2);
  EXPECT_EQ(Found(), "");
  Write(5, 12, 2);
  EXPECT_EQ(Found(), "[5,10)");
}

TEST_F(ShadowTest, OrderedAccessesDoNotConflict) {
  Write(0, 10, 1);
  Read(0, 10, 2, 1);
  Write(0, 10, 1, 1);
  EXPECT_EQ(Found(), "");
}

TEST_F(ShadowTest, ReadsConflictWithWritesOnly) {
  Read(0, 10, 1);
  Read(0, 10, 2);
  EXPECT_EQ(Found(), "");
  Write(3, 4, 2);
  EXPECT_EQ(Found(), "[3,4)");
}

// Lane 1 is a host lane; a host function on lane 2 comes after its write and overwrites a part. A
// copy's read after the function, whose call the write does not come before, may still be too
// early.
TEST_F(ShadowTest, AWriteByAHostFunctionHidesNoWriteOfTheHost) {
  const auto access = [](LaneIndex lane, uint32_t time, bool by_host) {
    auto made = std::make_shared<Access>();
    made->epoch = {lane, time};
    made->by_host = by_host;
    return made;
  };
  Clock nothing;
  Clock all;
  all.Set(1, 9);
  all.Set(2, 9);
  shadow_.Write(0, 8, access(1, 1, true), {&nothing, &nothing, {}}, *this);
  shadow_.Write(4, 12, access(2, 1, false), {&all, &all, {}}, *this);
  shadow_.Read(4, 12, access(2, 2, false), {&nothing, &all, {}}, *this);
  EXPECT_EQ(Found(), "[4,8)");
  shadow_.Read(4, 12, access(2, 3, false), {&all, &all, {}}, *this);
  EXPECT_EQ(Found(), "");
  shadow_.Write(0, 12, access(1, 2, true), {&all, &all, {}}, *this);
  shadow_.Read(0, 12, access(2, 4, false), {&all, &all, {}}, *this);
  EXPECT_EQ(Found(), "");
}

TEST_F(ShadowTest, AnAccessOverGapsAndPiecesSeesEachPiece) {
  Write(2, 4, 1);
  Write(6, 8, 1);
  Read(0, 10, 2);
  EXPECT_EQ(Found(), "[2,4)[6,8)");
  Write(0, 10, 1, 1);
  EXPECT_EQ(Found(), "");
}

TEST_F(ShadowTest, AWriteMakesItsRangeOneSegmentAgain) {
  for (uint64_t at = 0; at < 100; at += 2) Write(at, at + 1, 1);
  EXPECT_EQ(shadow_.segments(), 50U);
  Write(0, 100, 1);
  EXPECT_EQ(shadow_.segments(), 1U);
  Read(10, 20, 1);
  EXPECT_EQ(shadow_.segments(), 3U);
}

TEST_F(ShadowTest, ManyOrderedReadsKeepOne) {
  for (int i = 0; i < 1000; ++i) Read(0, 10, 1);
  Write(0, 10, 2, 999);  // ordered after all reads but the last
  EXPECT_EQ(Found(), "[0,10)");
}

TEST_F(ShadowTest, ClearForgetsEverything) {
  Write(0, 10, 1);
  shadow_.Clear();
  Write(0, 10, 2);
  EXPECT_EQ(Found(), "");
}

// Against a model that keeps every access of every byte.
TEST_F(ShadowTest, AgreesWithAModelOfSingleBytes) {
  struct Known {
    LaneIndex lane;
    uint32_t time;
    bool writes;
  };
  constexpr uint64_t kBytes = 24;
  uint64_t state = 42;
  const auto below = [&](uint32_t n) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<uint32_t>(state >> 33) % n;
  };
  for (int round = 0; round < 300; ++round) {
    shadow_.Clear();
    std::vector<std::vector<Known>> model(kBytes);
    uint32_t knows[3] = {0, TimeOf(2), TimeOf(1)};  // of the other lane
    for (int step = 0; step < 12; ++step) {
      const LaneIndex lane = 1 + below(2);
      const LaneIndex other = 3 - lane;
      if (below(3) == 0) knows[lane] = TimeOf(other);
      const uint64_t begin = below(kBytes - 1);
      const uint64_t end = begin + 1 + below(static_cast<uint32_t>(kBytes - begin));
      const bool writes = below(2) == 0;
      bool expected = false;
      for (uint64_t at = begin; at < end; ++at) {
        for (const Known& known : model[at]) {
          if (known.lane == other && known.time > knows[lane] && (writes || known.writes)) {
            expected = true;
          }
        }
      }
      Touch(begin, end, lane, writes, knows[lane]);
      const bool found = !Found().empty();
      ASSERT_EQ(found, expected) << "round " << round << ", step " << step;
      if (found) break;  // what follows a conflict is not promised
      for (uint64_t at = begin; at < end; ++at) model[at].push_back({lane, TimeOf(lane), writes});
    }
  }
}

}  // namespace
}  // namespace h2d::fake_internal
