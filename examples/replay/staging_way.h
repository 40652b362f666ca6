// The ways to stage a step that a run can choose from and compare.
#ifndef H2D_EXAMPLES_REPLAY_STAGING_WAY_H_
#define H2D_EXAMPLES_REPLAY_STAGING_WAY_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace h2d::replay {

enum class StagingWay : uint8_t {
  kSeparate,          // a copy for each tensor
  kSeparateMirrored,  // likewise, but not of what its destination holds
  kPacked,            // all tensors of the step in one transfer
  kPackedMirrored,    // likewise, but not of what the slab holds
};

inline constexpr std::array<StagingWay, 4> kAllWays = {
    StagingWay::kSeparate, StagingWay::kSeparateMirrored, StagingWay::kPacked,
    StagingWay::kPackedMirrored};

constexpr bool IsMirrored(StagingWay way) noexcept {
  return way == StagingWay::kSeparateMirrored || way == StagingWay::kPackedMirrored;
}
constexpr bool IsPacked(StagingWay way) noexcept {
  return way == StagingWay::kPacked || way == StagingWay::kPackedMirrored;
}

constexpr std::string_view ToString(StagingWay way) noexcept {
  switch (way) {
    case StagingWay::kSeparate:
      return "separate";
    case StagingWay::kSeparateMirrored:
      return "separate-mirrored";
    case StagingWay::kPacked:
      return "packed";
    case StagingWay::kPackedMirrored:
      return "packed-mirrored";
  }
  return "unknown";
}

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_STAGING_WAY_H_
