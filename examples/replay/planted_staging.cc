#include "h2d/examples/replay/planted_staging.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "h2d/device/pinned_buffer.h"
#include "h2d/examples/replay/padded_image.h"
#include "h2d/examples/replay/separate_staging.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::replay {
namespace {

uint64_t BytesOf(const Destination& place) { return place.count * place.element_bytes; }

class RingWithoutWait final : public SeparateStaging {
 public:
  RingWithoutWait(std::shared_ptr<Device> device, const StepSlabs& slabs,
                  std::vector<PinnedBuffer> slots)
      : SeparateStaging(slabs),
        device_(std::move(device)),
        tensors_(slabs.tensors()),
        slots_(std::move(slots)) {}

  StagerStats stats() const override { return stats_; }

 private:
  Expected<void> StageTensor(size_t index, const TensorView& tensor,
                             const Stream& stream) override {
    const Destination& place = tensors_[index];
    const std::span<std::byte> image = slots_[next_].bytes().first(BytesOf(place));
    next_ = (next_ + 1) % slots_.size();
    // The bug: a right ring waits here for the event that it recorded after the slot's last copy.
    device_->OnHostAccess(image, HostAccess::kWrite);
    WritePaddedImage(tensor, image);
    ++stats_.copies_asked;
    ++stats_.copies_issued;
    stats_.bytes_asked += image.size();
    stats_.bytes_sent += image.size();
    return device_->CopyAsync(place.ptr, image, stream);
  }

  std::shared_ptr<Device> device_;
  std::span<const Destination> tensors_;
  std::vector<PinnedBuffer> slots_;
  size_t next_ = 0;
  StagerStats stats_;
};

class StagingWithSharedMirror final : public SeparateStaging {
 public:
  StagingWithSharedMirror(std::unique_ptr<PinnedStager> stager, const StepSlabs& slabs)
      : SeparateStaging(slabs),
        stager_(std::move(stager)),
        tensors_(slabs.tensors()),
        last_sent_(slabs.per_slab()) {}

  StagerStats stats() const override {
    StagerStats stats = stager_->stats();
    stats.copies_asked += skipped_;
    stats.copies_skipped += skipped_;
    stats.bytes_asked += skipped_bytes_;
    return stats;
  }

 private:
  Expected<void> StageTensor(size_t index, const TensorView& tensor,
                             const Stream& stream) override {
    std::vector<std::byte> image(BytesOf(tensors_[index]));
    WritePaddedImage(tensor, image);
    // The bug: the remainder makes one mirror serve a tensor of each slab.
    std::vector<std::byte>& last_sent = last_sent_[index % last_sent_.size()];
    if (image == last_sent) {
      ++skipped_;
      skipped_bytes_ += image.size();
      return {};
    }
    Expected<CopyOutcome> copy =
        stager_->Copy(Destination::Of<std::byte>(tensors_[index].ptr, image.size()), image, stream);
    if (!copy) return ErrorOf(copy);
    last_sent = std::move(image);
    return {};
  }

  std::unique_ptr<PinnedStager> stager_;
  std::span<const Destination> tensors_;
  std::vector<std::vector<std::byte>> last_sent_;  // empty: nothing yet
  uint64_t skipped_ = 0;
  uint64_t skipped_bytes_ = 0;
};

}  // namespace

Expected<std::unique_ptr<StepStaging>> NewRingWithoutWait(const std::shared_ptr<Device>& device,
                                                          const StepSlabs& slabs, uint32_t slots) {
  uint64_t largest = 0;
  for (const Destination& tensor : slabs.tensors()) largest = std::max(largest, BytesOf(tensor));
  std::vector<PinnedBuffer> buffers;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    Expected<PinnedBuffer> buffer = device->AllocatePinned(largest);
    if (!buffer) return ErrorOf(buffer);
    buffers.push_back(*std::move(buffer));
  }
  return std::make_unique<RingWithoutWait>(device, slabs, std::move(buffers));
}

Expected<std::unique_ptr<StepStaging>> NewStagingWithSharedMirror(
    const std::shared_ptr<Device>& device, const StepSlabs& slabs, const StagerOptions& options) {
  Expected<std::unique_ptr<PinnedStager>> stager = PinnedStager::Create(device, options);
  if (!stager) return ErrorOf(stager);
  return std::make_unique<StagingWithSharedMirror>(*std::move(stager), slabs);
}

}  // namespace h2d::replay
