#include "h2d/examples/replay/separate_staging.h"

#include <utility>
#include <variant>
#include <vector>

#include "h2d/stager/h2d_mirror.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::replay {
namespace {

bool IsOfRequests(TensorKind kind) {
  return kind == TensorKind::kBlockTables || kind == TensorKind::kSampling ||
         kind == TensorKind::kSeeds;
}

// Copies to each tensor through what stands for it: a mirror, or the bare destination.
template <class Target>
class CopyEach final : public SeparateStaging {
 public:
  CopyEach(const StepSlabs& slabs, std::unique_ptr<PinnedStager> stager,
           std::vector<Target> targets)
      : SeparateStaging(slabs), stager_(std::move(stager)), targets_(std::move(targets)) {}

  StagerStats stats() const override { return stager_->stats(); }

 private:
  Expected<void> StageTensor(size_t index, const TensorView& tensor,
                             const Stream& stream) override {
    return std::visit(
        [&](const auto& image) -> Expected<void> {
          Expected<CopyOutcome> copy =
              stager_->Copy(targets_[index], image.values, stream, image.pad);
          if (!copy) return ErrorOf(copy);
          return {};
        },
        tensor);
  }

  std::unique_ptr<PinnedStager> stager_;
  std::vector<Target> targets_;
};

}  // namespace

Expected<void> SeparateStaging::Stage(const StepInputs& step) {
  for (const TensorKind kind : kAllTensors) {
    const size_t index = slabs_.IndexOf(step.slab, kind, step.graph);
    const Stream& stream = IsOfRequests(kind) ? step.admissions : step.plan;
    if (Expected<void> ok = StageTensor(index, step.tensors.View(kind), stream); !ok) return ok;
  }
  return {};
}

Expected<std::unique_ptr<StepStaging>> NewSeparateMirroredStaging(
    const std::shared_ptr<Device>& device, const StepSlabs& slabs, const StagerOptions& options) {
  Expected<std::unique_ptr<PinnedStager>> stager = PinnedStager::Create(device, options);
  if (!stager) return ErrorOf(stager);
  std::vector<H2DMirror> mirrors;
  for (const Destination& tensor : slabs.tensors()) {
    Expected<H2DMirror> mirror = (*stager)->NewMirror(tensor);
    if (!mirror) return ErrorOf(mirror);
    mirrors.push_back(*std::move(mirror));
  }
  return std::make_unique<CopyEach<H2DMirror>>(slabs, *std::move(stager), std::move(mirrors));
}

Expected<std::unique_ptr<StepStaging>> NewSeparateStaging(const std::shared_ptr<Device>& device,
                                                          const StepSlabs& slabs,
                                                          const StagerOptions& options) {
  Expected<std::unique_ptr<PinnedStager>> stager = PinnedStager::Create(device, options);
  if (!stager) return ErrorOf(stager);
  const auto tensors = slabs.tensors();
  return std::make_unique<CopyEach<Destination>>(
      slabs, *std::move(stager), std::vector<Destination>(tensors.begin(), tensors.end()));
}

}  // namespace h2d::replay
