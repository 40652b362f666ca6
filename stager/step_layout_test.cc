#include "h2d/stager/step_layout.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>

namespace h2d {
namespace {

// The message of a layout that cannot be built.
std::string MistakeIn(StepLayout::Builder builder) {
  auto layout = std::move(builder).Build();
  if (layout) return "no mistake";
  EXPECT_EQ(layout.error().code, ErrorCode::kInvalidArgument);
  return layout.error().message;
}

TEST(StepLayoutTest, FieldsLieOneBehindTheOtherAtTheirAlignment) {
  StepLayout::Builder builder;
  const auto a = builder.Add<int32_t>("a", 3);
  const auto b = builder.Add<uint8_t>("b", 5, {.alignment = 64});
  const auto c = builder.AddRows<double>("c", 2, 3, {.alignment = 8});
  auto layout = std::move(builder).Build();
  ASSERT_TRUE(layout);
  EXPECT_EQ(*layout->offset(a), 0u);
  EXPECT_EQ(*layout->offset(b), 64u);
  EXPECT_EQ(*layout->offset(c), 72u);
  EXPECT_EQ(layout->slab_bytes(), 72u + 48u);
}

TEST(StepLayoutTest, FieldsMayBePlaced) {
  StepLayout::Builder builder;
  const auto late = builder.Add<int32_t>("late", 4, {.offset = 256});
  const auto early = builder.Add<int32_t>("early", 4, {.offset = 0});
  const auto next = builder.Add<int32_t>("next", 4);
  auto layout = std::move(builder).Build();
  ASSERT_TRUE(layout);
  EXPECT_EQ(*layout->offset(late), 256u);
  EXPECT_EQ(*layout->offset(early), 0u);
  EXPECT_EQ(*layout->offset(next), 272u);
}

TEST(StepLayoutTest, TheOffsetOfAFieldOfNoOrAnotherLayoutIsAnError) {
  StepLayout::Builder builder;
  const auto a = builder.Add<int32_t>("a", 3);
  builder.AddRows<double>("b", 2, 3);
  const StepLayout layout = *std::move(builder).Build();
  StepLayout::Builder other_builder;
  const auto other = other_builder.AddRows<int32_t>("a", 1, 3);
  const StepLayout other_layout = *std::move(other_builder).Build();
  ASSERT_TRUE(layout.offset(a));
  ASSERT_TRUE(other_layout.offset(other));
  const auto code = [&](auto field) {
    const auto offset = layout.offset(field);
    return offset ? ErrorCode::kDevice : offset.error().code;
  };
  EXPECT_EQ(code(other), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(Field<int32_t>{}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(Field<int32_t>{a.layout, 999}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(Field<int32_t>{a.layout, 1}), ErrorCode::kInvalidArgument) << "of double";
}

TEST(StepLayoutTest, ALayoutIsWholeAfterItWasMovedFrom) {
  StepLayout::Builder builder;
  const auto a = builder.Add<int32_t>("a", 3);
  StepLayout layout = *std::move(builder).Build();
  StepLayout moved = std::move(layout);
  EXPECT_EQ(layout.slab_bytes(), 12u);
  EXPECT_EQ(*layout.offset(a), *moved.offset(a));
  layout = std::move(moved);
  EXPECT_EQ(moved.slab_bytes(), 12u);
}

TEST(StepLayoutTest, EachMistakeIsNamedWithItsField) {
  StepLayout::Builder none;
  EXPECT_NE(MistakeIn(std::move(none)).find("no fields"), std::string::npos);

  StepLayout::Builder twice;
  twice.Add<int32_t>("x", 1);
  twice.Add<int32_t>("x", 1);
  EXPECT_NE(MistakeIn(std::move(twice)).find("\"x\" was added twice"), std::string::npos);

  StepLayout::Builder unnamed;
  unnamed.Add<int32_t>("", 1);
  EXPECT_NE(MistakeIn(std::move(unnamed)).find("empty name"), std::string::npos);

  StepLayout::Builder empty;
  empty.Add<int32_t>("x", 0);
  EXPECT_NE(MistakeIn(std::move(empty)).find("at least one"), std::string::npos);

  StepLayout::Builder huge;
  huge.AddRows<int64_t>("x", ~uint64_t{0} / 4, 3);
  EXPECT_NE(MistakeIn(std::move(huge)).find("larger than"), std::string::npos);

  for (const uint32_t alignment : {0u, 3u, 2u, 512u}) {
    StepLayout::Builder bad;
    bad.Add<int32_t>("x", 1, {.alignment = alignment});
    EXPECT_NE(MistakeIn(std::move(bad)).find("alignment " + std::to_string(alignment)),
              std::string::npos);
  }

  StepLayout::Builder unaligned;
  unaligned.Add<int32_t>("x", 1, {.offset = 4});
  EXPECT_NE(MistakeIn(std::move(unaligned)).find("offset 4"), std::string::npos);

  StepLayout::Builder overlap;
  overlap.Add<int32_t>("x", 8);
  overlap.Add<int32_t>("y", 8, {.offset = 16});
  EXPECT_NE(MistakeIn(std::move(overlap)).find("overlaps \"x\""), std::string::npos);

  StepLayout::Builder far;
  far.Add<int32_t>("x", 8, {.offset = ~uint64_t{15}});
  EXPECT_NE(MistakeIn(std::move(far)).find("largest slab"), std::string::npos);
}

TEST(StepLayoutTest, RowsOfAllFieldsTogetherAreLimited) {
  StepLayout::Builder builder;
  builder.AddRows<uint8_t>("most", StepLayout::kMaxRows - 1, 1);
  builder.Add<uint8_t>("last", 1);
  builder.Add<uint8_t>("more", 1);
  EXPECT_NE(MistakeIn(std::move(builder)).find("\"more\" of 1 rows"), std::string::npos);
}

// Two layouts whose fields could be taken for each other's.
static_assert(!std::is_copy_constructible_v<StepLayout::Builder>);
static_assert(!std::is_copy_assignable_v<StepLayout::Builder>);

TEST(StepLayoutTest, ABuilderMakesOneLayout) {
  StepLayout::Builder builder;
  const auto first = builder.Add<int32_t>("x", 1);
  auto layout = std::move(builder).Build();
  ASSERT_TRUE(layout);
  EXPECT_EQ(first.layout, layout->id());

  const auto late = builder.Add<int64_t>("x", 1);  // NOLINT(bugprone-use-after-move)
  EXPECT_NE(late.layout, layout->id());
  EXPECT_NE(MistakeIn(std::move(builder)).find("built or moved from"), std::string::npos);
}

TEST(StepLayoutTest, AMovedBuilderTakesItsFieldsAlong) {
  StepLayout::Builder builder;
  const auto x = builder.Add<int32_t>("x", 1);
  StepLayout::Builder moved;
  moved = std::move(builder);
  EXPECT_NE(MistakeIn(std::move(builder)).find("built or moved from"), std::string::npos);
  auto layout = std::move(moved).Build();
  ASSERT_TRUE(layout);
  EXPECT_EQ(x.layout, layout->id());
}

TEST(StepLayoutTest, OnlyTheFirstMistakeIsReported) {
  StepLayout::Builder builder;
  builder.Add<int32_t>("first", 0);
  builder.Add<int32_t>("second", 0);
  EXPECT_NE(MistakeIn(std::move(builder)).find("first"), std::string::npos);
}

}  // namespace
}  // namespace h2d
