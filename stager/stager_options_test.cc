#include "h2d/stager/stager_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

namespace h2d {
namespace {

struct BadOptions {
  const char* field;
  std::function<void(StagerOptions&)> spoil;
  const char* value;
};

TEST(StagerOptionsTest, TheDefaultsAreValid) { EXPECT_TRUE(Validate({})); }

TEST(StagerOptionsTest, TheMessageNamesTheFieldAndItsValue) {
  const BadOptions cases[] = {
      {"slot_bytes", [](StagerOptions& o) { o.slot_bytes = 0; }, " 0"},
      {"slot_bytes", [](StagerOptions& o) { o.slot_bytes = ~uint64_t{0}; }, "18446744073709551615"},
      {"max_slots", [](StagerOptions& o) { o.max_slots = 0; }, " 0"},
      {"max_slots", [](StagerOptions& o) { o.max_slots = 1025; }, "1025"},
      {"initial_slots", [](StagerOptions& o) { o.initial_slots = 0; }, " 0"},
      {"initial_slots", [](StagerOptions& o) { o.initial_slots = 65; }, "65"},
      {"max_pinned_bytes", [](StagerOptions& o) { o.max_pinned_bytes = 0; }, " 0"},
      {"max_pinned_bytes", [](StagerOptions& o) { o.max_pinned_bytes = (8u << 16) - 1; }, "524287"},
      {"wait_timeout", [](StagerOptions& o) { o.wait_timeout = std::chrono::nanoseconds(-5); },
       "-5"},
  };
  for (const BadOptions& bad : cases) {
    StagerOptions options;
    bad.spoil(options);
    const Expected<void> valid = Validate(options);
    ASSERT_FALSE(valid) << bad.field << bad.value;
    EXPECT_EQ(valid.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(valid.error().message.find(bad.field), std::string::npos) << valid.error().message;
    EXPECT_NE(valid.error().message.find(bad.value), std::string::npos) << valid.error().message;
  }
}

TEST(StagerOptionsTest, PinnedLimitOfExactlyTheInitialSlotsIsEnough) {
  EXPECT_TRUE(Validate({.slot_bytes = 1, .initial_slots = 2, .max_pinned_bytes = 512}));
  EXPECT_FALSE(Validate({.slot_bytes = 1, .initial_slots = 2, .max_pinned_bytes = 511}));
}

TEST(StagerOptionsTest, TheLargestValuesDoNotOverflow) {
  EXPECT_FALSE(Validate({.slot_bytes = StagerOptions::kMaxSlotBytes,
                         .initial_slots = StagerOptions::kMaxSlots,
                         .max_slots = StagerOptions::kMaxSlots}));
}

}  // namespace
}  // namespace h2d
