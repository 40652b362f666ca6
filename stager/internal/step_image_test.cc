#include "h2d/stager/internal/step_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace h2d::internal {
namespace {

using Bytes = std::vector<std::byte>;

// A slab beside an oracle that is written in full at every submit.
class Simulation {
 public:
  explicit Simulation(uint32_t seed)
      : random_(seed), layout_(MakeLayout()), image_(*StepImage::Create(layout_)) {
    slab_.resize(layout_.slab_bytes());
    for (std::byte& b : slab_) b = static_cast<std::byte>(Draw(256));
    oracle_ = slab_;
  }

  void Step() {
    switch (Draw(12)) {
      case 0:
        return SomebodyElseWrites();
      case 1:
        return DeviceWrites();
      case 2:
      case 3:
        return Submit();
      case 4:
        return FailToSubmit();
      default:
        return Write();
    }
  }

  void Submit() {
    for (const ByteSpan span : image_.SpansToSend(Draw(3) * 16)) Send(span);
    image_.MarkSent();
    for (const auto& [offset, bytes] : asked_) {
      std::copy(bytes.begin(), bytes.end(), oracle_.begin() + static_cast<long>(offset));
    }
    asked_.clear();
  }

  // Every byte of every field; those between fields belong to the slab.
  ::testing::AssertionResult Agrees() const {
    for (const StepLayout::FieldInfo& field : layout_.fields()) {
      for (uint64_t at = field.offset; at < field.end(); ++at) {
        if (slab_[at] == oracle_[at]) continue;
        return ::testing::AssertionFailure() << field.name << " differs at slab byte " << at;
      }
    }
    return ::testing::AssertionSuccess();
  }

  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  StepLayout MakeLayout() {
    StepLayout::Builder builder;
    const auto fields = 2 + Draw(5);
    for (uint32_t i = 0; i < fields; ++i) {
      const std::string name = "field " + std::to_string(i);
      const bool device_written = Draw(5) == 0;
      if (Draw(2) == 0) {
        FieldOptions<uint16_t> options{.alignment = 16, .device_written = device_written};
        if (Draw(2) == 0) options.pad = static_cast<uint16_t>(Draw(2));
        builder.AddRows<uint16_t>(name, 1 + Draw(4), 1 + Draw(9), options);
      } else {
        FieldOptions<uint32_t> options{.alignment = 16, .device_written = device_written};
        if (Draw(2) == 0) options.pad = Draw(2);
        builder.Add<uint32_t>(name, 1 + Draw(12), options);
      }
    }
    return *std::move(builder).Build();
  }

  void Write() {
    const uint32_t index = Draw(static_cast<uint32_t>(layout_.fields().size()));
    const StepLayout::FieldInfo& field = layout_.fields()[index];
    const uint64_t row = Draw(static_cast<uint32_t>(field.rows));
    const bool pad_rest = Draw(2) == 0;
    const uint64_t first = pad_rest ? 0 : Draw(static_cast<uint32_t>(field.row_elements + 1));
    const uint64_t count = Draw(static_cast<uint32_t>(field.row_elements - first + 1));
    Bytes values(count * field.element_bytes);
    for (std::byte& b : values) b = static_cast<std::byte>(Draw(8) == 0);
    image_.Write({index, row, first * field.element_bytes}, values, pad_rest);
    if (pad_rest && field.padded) {
      for (uint64_t i = count; i < field.row_elements; ++i) {
        values.insert(values.end(), field.pad.begin(), field.pad.begin() + field.element_bytes);
      }
    }
    const uint64_t offset = field.offset + row * field.row_bytes() + first * field.element_bytes;
    asked_.emplace_back(offset, values);
    const auto held = image_.BytesOf(index).subspan(offset - field.offset, values.size());
    EXPECT_TRUE(std::equal(held.begin(), held.end(), values.begin()));
  }

  // By another path, which the image is told of for one field or for all.
  void SomebodyElseWrites() {
    const uint32_t index = Draw(static_cast<uint32_t>(layout_.fields().size()));
    Scribble(layout_.fields()[index]);
    if (Draw(2) == 0) {
      image_.Forget(index);
    } else {
      image_.ForgetAll();
    }
  }

  // The graph itself, which nobody is told of.
  void DeviceWrites() {
    for (const StepLayout::FieldInfo& field : layout_.fields()) {
      if (field.device_written) Scribble(field);
    }
  }

  void Scribble(const StepLayout::FieldInfo& field) {
    for (uint64_t at = field.offset; at < field.end(); ++at) {
      if (Draw(2) == 0) slab_[at] = oracle_[at] = static_cast<std::byte>(Draw(256));
    }
  }

  // Some of the bytes arrive, and an error is reported: all is still to be sent.
  void FailToSubmit() {
    for (const ByteSpan span : image_.SpansToSend(16)) {
      const uint64_t end = span.begin + Draw(static_cast<uint32_t>(span.bytes() + 1));
      Send({span.begin, end});
    }
    // What arrived may be seen, until the next submit repairs it.
    Submit();
  }

  void Send(ByteSpan span) {
    std::memcpy(slab_.data() + span.begin, image_.data() + span.begin, span.bytes());
    bytes_sent_ += span.bytes();
  }

  uint32_t Draw(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  std::mt19937 random_;
  StepLayout layout_;
  StepImage image_;
  Bytes slab_;
  Bytes oracle_;
  std::vector<std::pair<uint64_t, Bytes>> asked_;
  uint64_t bytes_sent_ = 0;
};

TEST(StepImageTest, WhatTravelsCannotBeToldFromSendingEveryWriteInFull) {
  uint64_t sent = 0;
  for (uint32_t seed = 0; seed < 5'000; ++seed) {
    Simulation simulation(seed);
    for (int step = 0; step < 60; ++step) {
      simulation.Step();
      if (step % 6 != 0) continue;
      simulation.Submit();
      ASSERT_TRUE(simulation.Agrees()) << "seed " << seed << ", step " << step;
    }
    sent += simulation.bytes_sent();
  }
  EXPECT_GT(sent, 0u);
}

struct Tensors {
  Field<int32_t> tokens;
  RowsField<int32_t> tables;
  Field<int32_t> lengths;
  StepLayout layout;

  static Tensors Make() {
    StepLayout::Builder builder;
    const auto tokens = builder.Add<int32_t>("tokens", 8, {.pad = -1});
    const auto tables = builder.AddRows<int32_t>("tables", 4, 4, {.pad = 0});
    const auto lengths = builder.Add<int32_t>("lengths", 8, {.pad = 0});
    return {tokens, tables, lengths, *std::move(builder).Build()};
  }
};

void WriteInts(StepImage& image, uint32_t field, uint64_t row, std::vector<int32_t> values) {
  image.Write({field, row, 0}, std::as_bytes(std::span(values)), /*pad_rest=*/true);
}

std::vector<ByteSpan> Sent(StepImage& image, uint64_t cover_gap_bytes) {
  const auto spans = image.SpansToSend(cover_gap_bytes);
  std::vector<ByteSpan> copy(spans.begin(), spans.end());
  image.MarkSent();
  return copy;
}

void WriteAll(StepImage& image) {
  WriteInts(image, 0, 0, {1, 2, 3});
  for (uint64_t row = 0; row < 4; ++row) WriteInts(image, 1, row, {7});
  WriteInts(image, 2, 0, {4, 5});
}

TEST(StepImageTest, AllFieldsTogetherAreOneSpan) {
  auto image = StepImage::Create(Tensors::Make().layout);
  WriteAll(*image);
  const auto spans = Sent(*image, 0);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].begin, 0u);
  EXPECT_EQ(spans[0].end, 128u);
}

TEST(StepImageTest, AnUnchangedStepSendsNothing) {
  auto image = StepImage::Create(Tensors::Make().layout);
  WriteAll(*image);
  Sent(*image, 0);
  WriteAll(*image);
  EXPECT_EQ(image->asked_bytes(), 128u);
  EXPECT_TRUE(Sent(*image, 0).empty());
}

TEST(StepImageTest, ChangesApartAreJoinedOverKnownBytesUpToTheGap) {
  auto image = StepImage::Create(Tensors::Make().layout);
  WriteAll(*image);
  Sent(*image, 0);
  for (const uint64_t gap : {uint64_t{91}, uint64_t{92}}) {
    const int32_t value = static_cast<int32_t>(gap);
    WriteInts(*image, 0, 0, {value, 2, 3});
    WriteInts(*image, 2, 0, {value, 5});
    const auto spans = Sent(*image, gap);
    ASSERT_EQ(spans.size(), gap == 92 ? 1u : 2u);
    EXPECT_EQ(spans.front().begin, 0u);
    EXPECT_EQ(spans.back().end, 100u);
  }
}

TEST(StepImageTest, UnknownBytesAreNeverCrossed) {
  auto image = StepImage::Create(Tensors::Make().layout);
  WriteAll(*image);
  Sent(*image, 0);
  image->Forget(1);
  WriteInts(*image, 0, 0, {9});
  WriteInts(*image, 2, 0, {9});
  EXPECT_EQ(Sent(*image, 1 << 20).size(), 2u);
}

TEST(StepImageTest, RewritingTheSameBytesForEverNeedsNoMoreMemory) {
  auto image = StepImage::Create(Tensors::Make().layout);
  for (int32_t i = 0; i < 100'000; ++i) {
    WriteInts(*image, 0, 0, {i});
    WriteInts(*image, 2, 0, {i});
  }
  EXPECT_EQ(image->SpansToSend(0).size(), 2u);
}

// One place short of full, a log that only sorts what it holds would do so at each write: minutes.
TEST(StepImageTest, ALogThatIsNearlyFullOfScatteredElementsIsNotSortedAtEachWrite) {
  constexpr uint32_t kElements = 16'383;
  StepLayout::Builder builder;
  builder.AddRows<uint32_t>("x", 8'192, 4);
  StepImage image = *StepImage::Create(*std::move(builder).Build());
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < kElements; ++i) {
      const std::span value(&round, 1);
      image.Write({0, i / 2, i % 2 * 8}, std::as_bytes(value), /*pad_rest=*/false);
    }
  }
  EXPECT_EQ(image.SpansToSend(0).size(), kElements);
  EXPECT_EQ(image.asked_bytes(), uint64_t{3} * kElements * sizeof(uint32_t));
}

}  // namespace
}  // namespace h2d::internal
