#include "h2d/examples/replay/tensors.h"

namespace h2d::replay {

std::string_view ToString(TensorKind kind) noexcept {
  switch (kind) {
    case TensorKind::kTokenIds:
      return "token ids";
    case TensorKind::kPositions:
      return "positions";
    case TensorKind::kSlotMapping:
      return "slot mapping";
    case TensorKind::kQueryStarts:
      return "query starts";
    case TensorKind::kSeqLens:
      return "sequence lengths";
    case TensorKind::kBlockTables:
      return "block tables";
    case TensorKind::kSampling:
      return "sampling";
    case TensorKind::kSeeds:
      return "seeds";
  }
  return "unknown";
}

}  // namespace h2d::replay
