#include "h2d/examples/replay/planted_staging.h"

#include <utility>
#include <vector>

#include "h2d/device/pinned_buffer.h"
#include "h2d/examples/replay/library_staging.h"
#include "h2d/examples/replay/padded_image.h"

namespace h2d::replay {
namespace {

uint64_t BytesOf(const Destination& destination) {
  return destination.count * destination.element_bytes;
}

class RingWithoutWait final : public StepStaging {
 public:
  RingWithoutWait(std::shared_ptr<Device> device, std::span<const Destination> destinations,
                  std::vector<PinnedBuffer> slots)
      : device_(std::move(device)),
        destinations_(destinations.begin(), destinations.end()),
        slots_(std::move(slots)) {}

  Expected<void> Stage(size_t destination, const TensorView& tensor,
                       const Stream& stream) override {
    const Destination& place = destinations_[destination];
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

  StagerStats stats() const override { return stats_; }

 private:
  std::shared_ptr<Device> device_;
  std::vector<Destination> destinations_;
  std::vector<PinnedBuffer> slots_;
  size_t next_ = 0;
  StagerStats stats_;
};

class StagingWithSharedMirror final : public StepStaging {
 public:
  StagingWithSharedMirror(std::unique_ptr<StepStaging> plain,
                          std::span<const Destination> destinations, size_t per_set)
      : plain_(std::move(plain)) {
    for (const Destination& destination : destinations.first(per_set)) {
      last_sent_.emplace_back(BytesOf(destination));
    }
    known_.resize(per_set);
  }

  Expected<void> Stage(size_t destination, const TensorView& tensor,
                       const Stream& stream) override {
    // The bug: the remainder makes one mirror serve a destination of each set.
    const size_t mirror = destination % last_sent_.size();
    std::vector<std::byte> image(last_sent_[mirror].size());
    WritePaddedImage(tensor, image);
    if (known_[mirror] && image == last_sent_[mirror]) {
      ++skipped_;
      skipped_bytes_ += image.size();
      return {};
    }
    last_sent_[mirror] = std::move(image);
    known_[mirror] = true;
    return plain_->Stage(destination, tensor, stream);
  }

  StagerStats stats() const override {
    StagerStats stats = plain_->stats();
    stats.copies_asked += skipped_;
    stats.copies_skipped += skipped_;
    stats.bytes_asked += skipped_bytes_;
    return stats;
  }

 private:
  std::unique_ptr<StepStaging> plain_;
  std::vector<std::vector<std::byte>> last_sent_;
  std::vector<bool> known_;
  uint64_t skipped_ = 0;
  uint64_t skipped_bytes_ = 0;
};

}  // namespace

Expected<std::unique_ptr<StepStaging>> NewRingWithoutWait(const std::shared_ptr<Device>& device,
                                                          std::span<const Destination> destinations,
                                                          uint32_t slots, uint64_t slot_bytes) {
  std::vector<PinnedBuffer> buffers;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    Expected<PinnedBuffer> buffer = device->AllocatePinned(slot_bytes);
    if (!buffer) return ErrorOf(buffer);
    buffers.push_back(std::move(*buffer));
  }
  return std::make_unique<RingWithoutWait>(device, destinations, std::move(buffers));
}

Expected<std::unique_ptr<StepStaging>> NewStagingWithSharedMirror(
    const std::shared_ptr<Device>& device, std::span<const Destination> destinations,
    size_t per_set, const StagerOptions& options) {
  Expected<std::unique_ptr<StepStaging>> plain = NewPlainStaging(device, destinations, options);
  if (!plain) return ErrorOf(plain);
  return std::make_unique<StagingWithSharedMirror>(std::move(*plain), destinations, per_set);
}

}  // namespace h2d::replay
