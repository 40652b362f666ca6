// The tensors that an engine stages for each step.
#ifndef H2D_EXAMPLES_REPLAY_TENSORS_H_
#define H2D_EXAMPLES_REPLAY_TENSORS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "h2d/device/element.h"

namespace h2d::replay {

// How a request's next token is drawn. Two floats, no padding bytes.
struct SamplingParams {
  float temperature = 1;
  float top_p = 1;
};

enum class TensorKind : uint8_t {
  // One element for each token of the step.
  kTokenIds,     // int32
  kPositions,    // int64: the token's place in its request
  kSlotMapping,  // int64: where its key and value go in the cache
  // One element, or one row, for each request of the batch.
  kQueryStarts,  // int32: where the request's tokens begin; one more element ends the last
  kSeqLens,      // int32: the request's tokens up to and with this step's
  kBlockTables,  // int32[width]: the request's blocks in the cache
  kSampling,     // SamplingParams
  kSeeds,        // uint64: of the request's random numbers
};
inline constexpr size_t kTensorKinds = 8;
inline constexpr size_t kTokenTensorKinds = 3;  // the first ones

inline constexpr std::array<TensorKind, kTensorKinds> kAllTensors = {
    TensorKind::kTokenIds,    TensorKind::kPositions, TensorKind::kSlotMapping,
    TensorKind::kQueryStarts, TensorKind::kSeqLens,   TensorKind::kBlockTables,
    TensorKind::kSampling,    TensorKind::kSeeds};

constexpr bool IsPerToken(TensorKind kind) noexcept { return kind <= TensorKind::kSlotMapping; }

std::string_view ToString(TensorKind kind) noexcept;

// The values of one tensor in one step; the rest of the destination becomes `pad`.
template <Element T>
struct TensorValues {
  std::span<const T> values;
  T pad{};
};

}  // namespace h2d::replay

template <>
inline constexpr bool h2d::kBitsAreValue<h2d::replay::SamplingParams> = true;

namespace h2d::replay {

using TensorView = std::variant<TensorValues<int32_t>, TensorValues<int64_t>,
                                TensorValues<uint64_t>, TensorValues<SamplingParams>>;

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_TENSORS_H_
