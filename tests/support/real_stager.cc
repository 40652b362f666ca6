// The library's own stager behind `StagerUnderTest`: gives the erased images their types back.
#include "h2d/tests/support/real_stager.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/stager/h2d_mirror.h"
#include "h2d/stager/pinned_stager.h"
#include "h2d/stager/slot_lease.h"

namespace h2d::testing {
namespace {

// An element of a size that no arithmetic type has.
struct Triple {
  std::array<uint32_t, 3> values;
};

// Calls `call(values, pad)` with the image as a span of elements of its size.
template <class Call>
auto WithElements(const HostImage& image, Call call) {
  const auto typed = [&]<class T>(T) {
    std::vector<T> values(image.count);
    if (image.count != 0) std::memcpy(values.data(), image.values, image.count * sizeof(T));
    std::optional<T> pad;
    if (image.pad != nullptr) std::memcpy(&pad.emplace(), image.pad, sizeof(T));
    return call(values, pad);
  };
  switch (image.element_bytes) {
    case 1:
      return typed(uint8_t{});
    case 2:
      return typed(uint16_t{});
    case 4:
      return typed(float{});
    case 8:
      return typed(double{});
    default:
      return typed(Triple{});
  }
}

class RealLease final : public LeaseUnderTest {
 public:
  RealLease(SlotLease lease, std::vector<std::optional<H2DMirror>>& mirrors)
      : lease_(std::move(lease)), mirrors_(mirrors) {}

  std::span<std::byte> bytes() const override { return lease_.bytes(); }
  Expected<CopyOutcome> Submit(const Destination& destination, const Stream& stream) override {
    return lease_.Submit(destination, stream);
  }
  Expected<CopyOutcome> SubmitMirrored(size_t mirror, const Stream& stream) override {
    return lease_.Submit(*mirrors_[mirror], stream);
  }

 private:
  SlotLease lease_;
  std::vector<std::optional<H2DMirror>>& mirrors_;
};

class RealStager final : public StagerUnderTest {
 public:
  RealStager(std::unique_ptr<PinnedStager> stager, size_t mirrors)
      : stager_(std::move(stager)), mirrors_(mirrors + 1) {}

  Expected<CopyOutcome> Copy(const Destination& destination, const HostImage& image,
                             const Stream& stream, bool wait) override {
    return WithElements(image, [&](const auto& values, const auto& pad) {
      return wait ? stager_->Copy(destination, values, stream, pad)
                  : stager_->TryCopy(destination, values, stream, pad);
    });
  }
  Expected<CopyOutcome> CopyMirrored(size_t mirror, const HostImage& image, const Stream& stream,
                                     bool wait) override {
    return WithElements(image, [&](const auto& values, const auto& pad) {
      return wait ? stager_->Copy(*mirrors_[mirror], values, stream, pad)
                  : stager_->TryCopy(*mirrors_[mirror], values, stream, pad);
    });
  }
  Expected<std::unique_ptr<LeaseUnderTest>> Acquire(uint64_t bytes, bool wait) override {
    if (wait) {
      Expected<SlotLease> lease = stager_->Acquire(bytes);
      if (!lease) return ErrorOf(lease);
      return std::make_unique<RealLease>(std::move(*lease), mirrors_);
    }
    Expected<std::optional<SlotLease>> lease = stager_->TryAcquire(bytes);
    if (!lease) return ErrorOf(lease);
    if (!*lease) return nullptr;
    return std::make_unique<RealLease>(std::move(**lease), mirrors_);
  }
  Expected<void> NewMirror(size_t mirror, const Destination& destination) override {
    Expected<H2DMirror> made = stager_->NewMirror(destination);
    if (!made) return ErrorOf(made);
    mirrors_[mirror].emplace(std::move(*made));
    return {};
  }
  void DropMirror(size_t mirror) override { mirrors_[mirror].reset(); }
  Expected<bool> Matches(size_t mirror, const HostImage& image) override {
    return WithElements(image, [&](const auto& values, const auto& pad) {
      return mirrors_[mirror]->Matches(values, pad);
    });
  }
  Expected<void> Record(size_t mirror, const HostImage& image, const Stream& stream) override {
    return WithElements(image, [&](const auto& values, const auto& pad) {
      return mirrors_[mirror]->Record(values, stream, pad);
    });
  }
  void Invalidate(size_t mirror) override { mirrors_[mirror]->Invalidate(); }
  Expected<void> Rebind(size_t mirror, const Destination& destination) override {
    return mirrors_[mirror]->Rebind(destination);
  }
  bool has_steps() const override { return true; }
  Expected<StepWriter> NewStepWriter(const StepLayout& layout, DevicePtr slab,
                                     const StepWriterOptions& options) override {
    return stager_->NewStepWriter(layout, slab, options);
  }
  Expected<CopyOutcome> CopyBatch(std::span<const BatchEntryUnderTest> entries,
                                  const Stream& stream, bool wait) override {
    std::vector<std::shared_ptr<const void>> values_alive;
    std::vector<BatchCopy> copies;
    for (const BatchEntryUnderTest& entry : entries) {
      WithElements(entry.image, [&](auto& values, const auto& pad) {
        auto kept = std::make_shared<std::decay_t<decltype(values)>>(std::move(values));
        copies.push_back(entry.mirror ? BatchCopy::To(*mirrors_[*entry.mirror], *kept, pad)
                                      : BatchCopy::To(entry.destination, *kept, pad));
        values_alive.push_back(std::move(kept));
      });
    }
    return wait ? stager_->CopyBatch(copies, stream) : stager_->TryCopyBatch(copies, stream);
  }
  std::optional<StagerStats> stats() const override { return stager_->stats(); }

 private:
  std::unique_ptr<PinnedStager> stager_;
  std::vector<std::optional<H2DMirror>> mirrors_;
};

}  // namespace

Expected<std::unique_ptr<StagerUnderTest>> MakeRealStager(std::shared_ptr<Device> device,
                                                          const StagerOptions& options,
                                                          size_t mirrors) {
  Expected<std::unique_ptr<PinnedStager>> stager = PinnedStager::Create(std::move(device), options);
  if (!stager) return ErrorOf(stager);
  return std::make_unique<RealStager>(std::move(*stager), mirrors);
}

}  // namespace h2d::testing
