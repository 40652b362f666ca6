#include "h2d/examples/replay/library_staging.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "h2d/stager/h2d_mirror.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::replay {
namespace {

// Copies to each destination through what stands for it: a mirror, or the bare destination.
template <class Target>
class LibraryStaging final : public StepStaging {
 public:
  LibraryStaging(std::unique_ptr<PinnedStager> stager, std::vector<Target> targets)
      : stager_(std::move(stager)), targets_(std::move(targets)) {}

  Expected<void> Stage(size_t destination, const TensorView& tensor,
                       const Stream& stream) override {
    return std::visit(
        [&](const auto& image) -> Expected<void> {
          Expected<CopyOutcome> copy =
              stager_->Copy(targets_[destination], image.values, stream, image.pad);
          if (!copy) return ErrorOf(copy);
          return {};
        },
        tensor);
  }

  StagerStats stats() const override { return stager_->stats(); }

 private:
  std::unique_ptr<PinnedStager> stager_;
  std::vector<Target> targets_;
};

}  // namespace

StagerOptions RingOptions(uint32_t slots, uint64_t largest_image_bytes) {
  StagerOptions options;
  options.slot_bytes = uint64_t{4} << 10;
  options.initial_slots = std::max(1U, slots / 2);
  options.max_slots = slots;
  options.max_pinned_bytes = std::max(options.max_pinned_bytes, 8 * largest_image_bytes);
  return options;
}

Expected<std::unique_ptr<StepStaging>> NewMirroredStaging(const std::shared_ptr<Device>& device,
                                                          std::span<const Destination> destinations,
                                                          const StagerOptions& options) {
  Expected<std::unique_ptr<PinnedStager>> stager = PinnedStager::Create(device, options);
  if (!stager) return ErrorOf(stager);
  std::vector<H2DMirror> mirrors;
  for (const Destination& destination : destinations) {
    Expected<H2DMirror> mirror = (*stager)->NewMirror(destination);
    if (!mirror) return ErrorOf(mirror);
    mirrors.push_back(std::move(*mirror));
  }
  return std::make_unique<LibraryStaging<H2DMirror>>(std::move(*stager), std::move(mirrors));
}

Expected<std::unique_ptr<StepStaging>> NewPlainStaging(const std::shared_ptr<Device>& device,
                                                       std::span<const Destination> destinations,
                                                       const StagerOptions& options) {
  Expected<std::unique_ptr<PinnedStager>> stager = PinnedStager::Create(device, options);
  if (!stager) return ErrorOf(stager);
  return std::make_unique<LibraryStaging<Destination>>(
      std::move(*stager), std::vector<Destination>(destinations.begin(), destinations.end()));
}

}  // namespace h2d::replay
