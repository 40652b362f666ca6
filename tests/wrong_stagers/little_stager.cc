#include "h2d/tests/wrong_stagers/little_stager.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "h2d/tests/wrong_stagers/little_mirror.h"
#include "h2d/tests/wrong_stagers/little_ring.h"

namespace h2d::testing {
namespace {

bool Overlap(const Destination& a, const Destination& b) {
  return a.ptr.address() < b.ptr.address() + b.count * b.element_bytes &&
         b.ptr.address() < a.ptr.address() + a.count * a.element_bytes;
}

Expected<void> CheckFits(const Destination& destination, const HostImage& image) {
  if (destination.ptr.is_null()) return InvalidArgument("The destination is null.");
  if (destination.element_bytes != image.element_bytes) {
    return InvalidArgument("The elements have another size than the destination's.");
  }
  if (destination.count > (~uint64_t{0} - destination.ptr.address()) / destination.element_bytes) {
    return InvalidArgument("The destination's size overflows.");
  }
  if (image.count > destination.count) return InvalidArgument("Too many values.");
  return {};
}

class LittleStager;

class LittleLease final : public LeaseUnderTest {
 public:
  LittleLease(LittleStager& stager, std::shared_ptr<LittleRing> ring, size_t slot, uint64_t bytes)
      : stager_(stager), ring_(std::move(ring)), slot_(slot), bytes_(bytes) {}
  ~LittleLease() override {
    if (bytes_ != 0) ring_->GiveBack(slot_);
  }

  std::span<std::byte> bytes() const override { return ring_->BytesOf(slot_, bytes_); }
  Expected<CopyOutcome> Submit(const Destination& destination, const Stream& stream) override;
  Expected<CopyOutcome> SubmitMirrored(size_t mirror, const Stream& stream) override;

 private:
  LittleStager& stager_;
  std::shared_ptr<LittleRing> ring_;
  size_t slot_;
  uint64_t bytes_;
};

class LittleStager final : public StagerUnderTest {
 public:
  LittleStager(std::shared_ptr<LittleRing> ring, size_t mirrors)
      : ring_(std::move(ring)), mirrors_(mirrors + 1) {}

  Expected<CopyOutcome> Copy(const Destination& destination, const HostImage& image,
                             const Stream& stream, bool wait) override {
    if (image.count == 0 && image.pad == nullptr) return CopyOutcome{};
    if (const auto fits = CheckFits(destination, image); !fits) return Unexpected(fits.error());
    const Expected<StreamId> id = Usable(stream);
    if (!id) return Unexpected(id.error());
    const ImageBytes bytes = BytesOfImage(image, destination.count);
    return Send(bytes, destination.ptr, stream, *id, wait, nullptr);
  }

  Expected<CopyOutcome> CopyMirrored(size_t index, const HostImage& image, const Stream& stream,
                                     bool wait) override {
    if (image.count == 0 && image.pad == nullptr) return CopyOutcome{};
    LittleMirror& mirror = *mirrors_[index];
    const Expected<StreamId> id = Usable(stream);
    if (!id) return Unexpected(id.error());
    MutexLock lock(mirror.mutex);
    const ImageBytes bytes = BytesOfImage(image, mirror.destination.count);
    const auto span = mirror.Difference(bytes, image.count * image.element_bytes, flaw());
    return Bring(mirror, bytes, span, stream, *id, wait);
  }

  Expected<std::unique_ptr<LeaseUnderTest>> Acquire(uint64_t bytes, bool wait) override {
    if (bytes == 0) return InvalidArgument("A slot of 0 bytes.");
    if (bytes > LittleRing::kSlotBytes) return ResourceExhausted("No slot is that large.");
    Expected<std::optional<size_t>> slot = ring_->Take(wait);
    if (!slot) return ErrorOf(slot);
    if (!*slot) return nullptr;
    return std::make_unique<LittleLease>(*this, ring_, **slot, bytes);
  }

  Expected<void> NewMirror(size_t index, const Destination& destination) override {
    for (const auto& other : mirrors_) {
      if (other && Overlap(other->destination, destination) &&
          flaw() != Flaw::kOverlappingMirrors) {
        return InvalidArgument("The destination overlaps another mirror's.");
      }
    }
    mirrors_[index] = std::make_unique<LittleMirror>();
    mirrors_[index]->destination = destination;
    mirrors_[index]->known.assign(destination.count * destination.element_bytes, -1);
    return {};
  }
  void DropMirror(size_t index) override { mirrors_[index].reset(); }

  Expected<bool> Matches(size_t index, const HostImage& image) override {
    LittleMirror& mirror = *mirrors_[index];
    MutexLock lock(mirror.mutex);
    const ImageBytes bytes = BytesOfImage(image, mirror.destination.count);
    return mirror.Difference(bytes, image.count * image.element_bytes, flaw()).bytes == 0;
  }

  Expected<void> Record(size_t index, const HostImage& image, const Stream& stream) override {
    LittleMirror& mirror = *mirrors_[index];
    const Expected<StreamId> id = Usable(stream);
    if (!id) return Unexpected(id.error());
    MutexLock lock(mirror.mutex);
    mirror.Forget(Flaw::kNone);
    Expected<std::optional<size_t>> slot = ring_->Take(true);
    if (!slot) return ErrorOf(slot);
    if (auto waits = ring_->MakeStreamWait(stream, *id, mirror.origin); !waits) {
      ring_->GiveBack(**slot);
      return waits;
    }
    Expected<Origin> origin = ring_->Enqueue(**slot, 0, DevicePtr(), stream, *id);
    if (!origin) return ErrorOf(origin);
    mirror.origin = *origin;
    if (origin->unknown) return MakeError(ErrorCode::kDevice, "The record failed.");
    mirror.Learn(BytesOfImage(image, mirror.destination.count));
    return {};
  }

  void Invalidate(size_t index) override {
    MutexLock lock(mirrors_[index]->mutex);
    mirrors_[index]->Forget(flaw());
  }

  Expected<void> Rebind(size_t index, const Destination& destination) override {
    if (destination.ptr.is_null()) return InvalidArgument("The destination is null.");
    MutexLock lock(mirrors_[index]->mutex);
    mirrors_[index]->destination = destination;
    if (flaw() != Flaw::kRebindKeepsContent) mirrors_[index]->Forget(flaw());
    return {};
  }

  std::optional<StagerStats> stats() const override { return std::nullopt; }

  Flaw flaw() const noexcept { return ring_->flaw(); }
  uint32_t ElementBytes(size_t mirror) const { return mirrors_[mirror]->destination.element_bytes; }

 private:
  Expected<StreamId> Usable(const Stream& stream) {
    Expected<StreamStatus> status = ring_->device().Inspect(stream);
    if (!status) return ErrorOf(status);
    if (status->capturing && flaw() != Flaw::kCapturesUnseen) {
      return FailedPrecondition("The stream is being captured.");
    }
    return stream.id();
  }

  // The copy of one call; `origin` becomes what a mirror remembers of it.
  Expected<CopyOutcome> Send(std::span<const uint8_t> bytes, DevicePtr to, const Stream& stream,
                             StreamId id, bool wait, Origin* origin) {
    Expected<std::optional<size_t>> slot = ring_->Take(wait);
    if (!slot) return ErrorOf(slot);
    if (!*slot) return CopyOutcome{.kind = CopyOutcome::Kind::kWouldBlock};
    const bool fills_late = flaw() == Flaw::kFillsAfterEnqueue;
    if (!fills_late) Fill(**slot, bytes);
    const uint64_t too_many = flaw() == Flaw::kSendsOneTooMany ? 1 : 0;
    Expected<Origin> sent = ring_->Enqueue(**slot, bytes.size() + too_many, to, stream, id);
    if (fills_late) Fill(**slot, bytes);
    if (origin != nullptr && !(sent->unknown && flaw() == Flaw::kFailureForgetsOrder)) {
      *origin = *sent;
    } else if (origin != nullptr) {
      *origin = Origin();
    }
    if (sent->unknown) return MakeError(ErrorCode::kDevice, "The copy failed.");
    if (origin == nullptr && flaw() != Flaw::kPlainCopyUnseen) ForgetRange(to, bytes.size());
    return CopyOutcome{.kind = CopyOutcome::Kind::kIssued, .bytes_sent = bytes.size()};
  }

  void Fill(size_t slot, std::span<const uint8_t> bytes) {
    const std::span<std::byte> memory = ring_->BytesOf(slot, bytes.size());
    ring_->device().OnHostAccess(memory, HostAccess::kWrite);
    std::memcpy(memory.data(), bytes.data(), bytes.size());
  }

  void ForgetRange(DevicePtr to, uint64_t bytes) {
    for (const auto& mirror : mirrors_) {
      if (mirror && Overlap(mirror->destination, {to, bytes, 1})) {
        MutexLock lock(mirror->mutex);
        mirror->Forget(Flaw::kNone);
      }
    }
  }

  Expected<CopyOutcome> Bring(LittleMirror& mirror, const ImageBytes& image,
                              const LittleMirror::Span& span, const Stream& stream, StreamId id,
                              bool wait) {
    const bool whole = span.bytes == image.size();
    const bool unordered = (flaw() == Flaw::kSkipWithoutWait && span.bytes == 0) ||
                           (flaw() == Flaw::kTrimWithoutWait && span.bytes != 0 && !whole) ||
                           (flaw() == Flaw::kCopyWithoutWait && whole);
    if (!unordered) {
      auto waits = ring_->MakeStreamWait(stream, id, mirror.origin);
      if (!waits) return ErrorOf(waits);
    }
    if (span.bytes == 0) return CopyOutcome{};
    const auto part = std::span(image).subspan(span.first, span.bytes);
    Expected<CopyOutcome> sent =
        Send(part, mirror.destination.ptr + span.first, stream, id, wait, &mirror.origin);
    if (!sent) {
      if (flaw() == Flaw::kKeptAfterFailure) {
        mirror.Learn(image);
      } else {
        mirror.Forget(Flaw::kNone);
      }
      return sent;
    }
    if (sent->kind == CopyOutcome::Kind::kWouldBlock) return sent;
    mirror.Learn(image);
    if (!whole) sent->kind = CopyOutcome::Kind::kTrimmed;
    return sent;
  }

  std::shared_ptr<LittleRing> ring_;
  std::vector<std::unique_ptr<LittleMirror>> mirrors_;
};

// A slot in place is sent as a copy of itself: nothing here needs to be fast.
Expected<CopyOutcome> LittleLease::Submit(const Destination& destination, const Stream& stream) {
  const HostImage image{.values = bytes().data(),
                        .count = bytes_ / destination.element_bytes,
                        .element_bytes = destination.element_bytes};
  auto outcome = stager_.Copy(destination, image, stream, false);
  if (outcome && outcome->kind != CopyOutcome::Kind::kWouldBlock) {
    ring_->GiveBack(slot_);
    bytes_ = 0;
  }
  return outcome;
}

Expected<CopyOutcome> LittleLease::SubmitMirrored(size_t mirror, const Stream& stream) {
  const uint32_t element = stager_.ElementBytes(mirror);
  const HostImage image{
      .values = bytes().data(), .count = bytes_ / element, .element_bytes = element};
  auto outcome = stager_.CopyMirrored(mirror, image, stream, false);
  if (outcome && outcome->kind != CopyOutcome::Kind::kWouldBlock) {
    ring_->GiveBack(slot_);
    bytes_ = 0;
  }
  return outcome;
}

}  // namespace

StagerFactory LittleStagerWith(Flaw flaw) {
  return [flaw](std::shared_ptr<Device> device, const StagerOptions& options,
                size_t mirrors) -> Expected<std::unique_ptr<StagerUnderTest>> {
    Expected<std::shared_ptr<LittleRing>> ring =
        LittleRing::Create(std::move(device), options, flaw);
    if (!ring) return ErrorOf(ring);
    return std::make_unique<LittleStager>(std::move(*ring), mirrors);
  };
}

}  // namespace h2d::testing
