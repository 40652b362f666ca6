#include "h2d/examples/replay/padded_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace h2d::replay {
namespace {

template <class T, size_t n>
std::array<T, n> ImageOf(const TensorValues<T>& tensor) {
  std::array<T, n> image;
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span<T>(image));
  std::fill(bytes.begin(), bytes.end(), std::byte{0x5a});
  WritePaddedImage(tensor, bytes);
  return image;
}

TEST(PaddedImageTest, ThePaddingFollowsTheValuesToTheEnd) {
  const std::vector<int32_t> values = {1, 3};
  EXPECT_EQ((ImageOf<int32_t, 4>({values, -1})), (std::array<int32_t, 4>{1, 3, -1, -1}));
  EXPECT_EQ((ImageOf<int32_t, 2>({values, -1})), (std::array<int32_t, 2>{1, 3}));
}

TEST(PaddedImageTest, WithoutValuesAllIsPadding) {
  EXPECT_EQ((ImageOf<int64_t, 3>({{}, -1})), (std::array<int64_t, 3>{-1, -1, -1}));
}

TEST(PaddedImageTest, PaddingOfAnyLengthIsTheSameElementAgainAndAgain) {
  const std::vector<int64_t> values = {7};
  const auto image = ImageOf<int64_t, 100>({values, -2});
  EXPECT_EQ(image[0], 7);
  EXPECT_EQ(std::count(image.begin(), image.end(), -2), 99);
}

TEST(PaddedImageTest, AStructIsPaddedWithItsOwnKind) {
  const std::vector<SamplingParams> values = {{0.5F, 0.25F}};
  const auto image = ImageOf<SamplingParams, 2>({values, SamplingParams{}});
  EXPECT_EQ(image[0].top_p, 0.25F);
  EXPECT_EQ(image[1].temperature, 1.0F);
  EXPECT_EQ(image[1].top_p, 1.0F);
}

}  // namespace
}  // namespace h2d::replay
