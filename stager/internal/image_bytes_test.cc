#include "h2d/stager/internal/image_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace h2d::internal {
namespace {

using Bytes = std::vector<std::byte>;

// The image written out, byte by byte.
Bytes Whole(const ImageBytes& image) {
  Bytes bytes(image.values, image.values + image.value_bytes);
  for (uint64_t i = 0; i < image.pad_bytes; ++i)
    bytes.push_back(image.pad[i % image.element_bytes]);
  return bytes;
}

ByteSpan NaiveDifference(const Bytes& a, const Bytes& b, uint64_t bytes) {
  uint64_t begin = 0;
  while (begin < bytes && a[begin] == b[begin]) ++begin;
  if (begin == bytes) return {};
  uint64_t end = bytes;
  while (a[end - 1] == b[end - 1]) --end;
  return {begin, end};
}

// A random image of few distinct byte values, so that equal neighbours are common.
class RandomImage {
 public:
  explicit RandomImage(uint32_t seed) : random_(seed) {
    image_.element_bytes = 1 + Draw(12);
    values_.resize(Draw(70) * image_.element_bytes);
    for (std::byte& b : values_) b = static_cast<std::byte>(Draw(2));
    pad_.resize(image_.element_bytes);
    for (std::byte& b : pad_) b = static_cast<std::byte>(Draw(2));
    image_.values = values_.data();
    image_.value_bytes = values_.size();
    image_.pad = pad_.data();
    image_.pad_bytes = Draw(70) * image_.element_bytes;
  }
  const ImageBytes& image() const { return image_; }
  uint32_t Draw(uint32_t n) { return random_() % n; }

 private:
  std::mt19937 random_;
  Bytes values_;
  Bytes pad_;
  ImageBytes image_;
};

TEST(ImageBytesTest, DifferenceIsWhatComparingByteByByteFinds) {
  for (uint32_t seed = 0; seed < 20'000; ++seed) {
    RandomImage random(seed);
    const ImageBytes& image = random.image();
    const Bytes whole = Whole(image);
    Bytes held = whole;
    for (uint32_t changes = random.Draw(3); changes > 0 && !held.empty(); --changes) {
      held[random.Draw(static_cast<uint32_t>(held.size()))] ^= std::byte{1};
    }
    const uint64_t elements = whole.size() / image.element_bytes;
    const uint64_t compared =
        random.Draw(static_cast<uint32_t>(elements + 1)) * image.element_bytes;
    for (const uint64_t bytes : {compared, uint64_t{whole.size()}}) {
      const ByteSpan expected = NaiveDifference(whole, held, bytes);
      const ByteSpan found = Difference(image, held.data(), bytes);
      ASSERT_EQ(found.empty(), expected.empty()) << "seed " << seed;
      if (expected.empty()) continue;
      ASSERT_EQ(found.begin, expected.begin) << "seed " << seed;
      ASSERT_EQ(found.end, expected.end) << "seed " << seed;
    }
  }
}

TEST(ImageBytesTest, LongImagesDifferAtTheRightPlace) {
  for (const uint64_t bytes : {uint64_t{255}, uint64_t{256}, uint64_t{1023}, uint64_t{70'000}}) {
    const Bytes values(bytes, std::byte{7});
    const ImageBytes image{.values = values.data(), .value_bytes = bytes, .element_bytes = 1};
    for (const uint64_t at : {uint64_t{0}, uint64_t{1}, bytes / 2, bytes - 1}) {
      Bytes held = values;
      held[at] = std::byte{8};
      const ByteSpan span = Difference(image, held.data(), bytes);
      EXPECT_EQ(span.begin, at);
      EXPECT_EQ(span.end, at + 1);
    }
  }
}

TEST(ImageBytesTest, FillWritesAnySpanOfTheImageAndNothingElse) {
  for (uint32_t seed = 0; seed < 20'000; ++seed) {
    RandomImage random(seed);
    const Bytes whole = Whole(random.image());
    const auto bytes = static_cast<uint32_t>(whole.size());
    const uint64_t begin = random.Draw(bytes + 1);
    const uint64_t end = begin + random.Draw(static_cast<uint32_t>(bytes - begin + 1));
    Bytes to(end - begin + 2, std::byte{0xee});
    Fill(random.image(), {begin, end}, to.data() + 1);
    ASSERT_EQ(to.front(), std::byte{0xee}) << "seed " << seed;
    ASSERT_EQ(to.back(), std::byte{0xee}) << "seed " << seed;
    ASSERT_EQ(Bytes(to.begin() + 1, to.end() - 1), Bytes(whole.begin() + static_cast<long>(begin),
                                                         whole.begin() + static_cast<long>(end)))
        << "seed " << seed;
  }
}

TEST(ImageBytesTest, BitsAreComparedAndNotValues) {
  const float zeros[2] = {0.0f, -0.0f};
  const ImageBytes plus{.values = reinterpret_cast<const std::byte*>(&zeros[0]),
                        .value_bytes = sizeof(float),
                        .element_bytes = sizeof(float)};
  const auto* minus = reinterpret_cast<const std::byte*>(&zeros[1]);
  EXPECT_FALSE(Difference(plus, minus, sizeof(float)).empty());
  EXPECT_TRUE(Difference(plus, plus.values, sizeof(float)).empty());
}

}  // namespace
}  // namespace h2d::internal
