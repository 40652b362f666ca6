// Copies to destinations of their own, together: one slot, one batch call, one event.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "h2d/stager/internal/checked_image.h"
#include "h2d/stager/internal/inline_vector.h"
#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {
namespace {

// Each entry begins at a multiple of this in the slot: as large as any element's alignment.
constexpr uint64_t kEntryAlignment = 16;

uint64_t RoomFor(ByteSpan span) noexcept {
  return (span.bytes() + kEntryAlignment - 1) / kEntryAlignment * kEntryAlignment;
}

Unexpected OfCopy(size_t index, Error error) {
  error.message = "Copy " + std::to_string(index) + " of the batch: " + error.message;
  return Unexpected(std::move(error));
}

// The mirrors of a batch, locked in the order in which they were made, so that two batches cannot
// wait for each other.
class MirrorLocks {
 public:
  // Errors: a mirror is named twice; then none is locked.
  Expected<void> Lock(std::span<const BatchItem> items) H2D_ANNOTATE(no_thread_safety_analysis) {
    std::array<MirrorState*, kMaxBatchEntries> mirrors;
    size_t count = 0;
    for (const BatchItem& item : items) {
      if (item.mirror != nullptr) mirrors[count++] = item.mirror;
    }
    const auto end = mirrors.begin() + static_cast<std::ptrdiff_t>(count);
    std::sort(mirrors.begin(), end,
              [](MirrorState* a, MirrorState* b) { return a->rank() < b->rank(); });
    if (std::adjacent_find(mirrors.begin(), end) != end) {
      return InvalidArgument("The batch brings values to one mirror twice.");
    }
    for (MirrorState* mirror : std::span(mirrors).first(count)) {
      mirror->mutex().Lock();
      locked_[count_++] = mirror;
    }
    return {};
  }
  MirrorLocks() = default;
  MirrorLocks(const MirrorLocks&) = delete;
  MirrorLocks& operator=(const MirrorLocks&) = delete;
  ~MirrorLocks() H2D_ANNOTATE(no_thread_safety_analysis) {
    while (count_ > 0) locked_[--count_]->mutex().Unlock();
  }

 private:
  std::array<MirrorState*, kMaxBatchEntries> locked_;
  size_t count_ = 0;
};

// The copies of a batch have no order among themselves, so two of them may not write one byte.
Expected<void> CheckDisjoint(std::span<const BatchItem> items) {
  std::array<const BatchItem*, kMaxBatchEntries> sorted;
  size_t count = 0;
  for (const BatchItem& item : items) {
    if (item.bytes.bytes() > 0) sorted[count++] = &item;
  }
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(sorted.begin(), end,
            [](const BatchItem* a, const BatchItem* b) { return a->begin() < b->begin(); });
  const auto overlap = std::adjacent_find(
      sorted.begin(), end,
      [](const BatchItem* a, const BatchItem* b) { return b->begin() < a->end(); });
  if (overlap == end) return {};
  const auto number = [&](const BatchItem* item) { return std::to_string(item - items.data()); };
  return InvalidArgument("Copies " + number(overlap[0]) + " and " + number(overlap[1]) +
                         " of the batch write the same bytes, and have no order.");
}

}  // namespace

// One batch call, or a copy call each where a batch is one copy or the stream takes none.
Expected<void> StagerCore::EnqueueEntries(std::span<const CopyEntry> entries,
                                          const Stream& stream) {
  if (entries.size() > 1 && stream.kind() != StreamKind::kLegacyDefault) {
    return device_->CopyBatchAsync(entries, stream);
  }
  for (const CopyEntry& entry : entries) {
    Expected<void> sent = device_->CopyAsync(entry.destination, entry.source, stream);
    if (!sent) return sent;
  }
  return {};
}

// Finds what each copy is and what of it must travel; answers the bytes of all images.
Expected<uint64_t> StagerCore::PlanBatch(std::span<BatchItem> items) {
  uint64_t asked = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    BatchItem& item = items[i];
    const Destination& to = item.mirror ? item.mirror->destination() : item.destination;
    auto bytes = CheckedImage(item.image, to);
    if (!bytes) return OfCopy(i, std::move(bytes).error());
    item.bytes = *bytes;
    item.base = to.ptr;
    const auto sum = CheckedSum(asked, bytes->bytes());
    if (!sum) return DoesNotFitLimit(~uint64_t{0});
    asked = *sum;
  }
  if (Expected<void> disjoint = CheckDisjoint(items); !disjoint) return ErrorOf(disjoint);
  return asked;
}

Expected<void> StagerCore::FollowAll(std::span<const BatchItem> items, const Stream& stream,
                                     StreamId id) {
  for (const BatchItem& item : items) {
    if (item.mirror == nullptr || item.bytes.bytes() == 0) continue;
    Expected<bool> ordered = item.mirror->order().Follow(ring_, stream, id);
    if (!ordered) return ErrorOf(ordered);
  }
  return {};
}

Expected<CopyOutcome> StagerCore::TryBatch(std::span<BatchItem> items, const Stream& stream,
                                           HeldSlot& held, uint64_t* wanted) {
  auto asked = PlanBatch(items);
  if (!asked) return ErrorOf(asked);
  if (*asked == 0) return CopyOutcome{};
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  uint64_t room = 0;
  for (BatchItem& item : items) {
    item.span = {0, item.bytes.bytes()};
    if (item.mirror && !item.span.empty()) {
      item.span = item.mirror->ToSend(item.bytes, options_.min_trim_bytes);
    }
    room += RoomFor(item.span);
  }
  if (room > 0) {
    auto enough = TakeInto(held, room, stream, status->id);
    if (!enough) return ErrorOf(enough);
    if (!*enough) {
      *wanted = room;
      return CopyOutcome{CopyOutcome::Kind::kWouldBlock, 0};
    }
  }
  // Before anything is enqueued or committed: a batch is all or nothing towards its mirrors.
  Expected<void> ordered = FollowAll(items, stream, status->id);
  if (!ordered) return ErrorOf(ordered);
  if (room > 0) return SendBatch(items, held.Release(), *asked, stream, status->id);
  Reached(Mark::kBatchSkipped);
  CountSkipped(*asked);
  return CopyOutcome{};
}

// REQUIRES: `stream` is ordered after the last copy of every mirror.
Expected<CopyOutcome> StagerCore::SendBatch(std::span<const BatchItem> items, const SlotRef& slot,
                                            uint64_t asked, const Stream& stream, StreamId id) {
  InlineVector<CopyEntry, kMaxBatchEntries> entries;
  SentBytes bytes{.asked = asked, .sent = 0};
  device_->OnHostAccess(slot.bytes, HostAccess::kWrite);
  std::byte* at = slot.bytes.data();
  for (const BatchItem& item : items) {
    if (item.span.empty()) continue;
    Fill(item.bytes, item.span, at);
    entries.push_back({item.base + item.span.begin, {at, item.span.bytes()}});
    at += RoomFor(item.span);
    bytes.sent += item.span.bytes();
    if (item.mirror != nullptr) item.mirror->Remember(item.bytes, item.span);
  }
  ForgetPlain(items);
  Reached(stream.kind() == StreamKind::kLegacyDefault ? Mark::kBatchSeparate : Mark::kBatch);
  Expected<void> sent = EnqueueEntries(entries.all(), stream);
  CopyRef copy;
  Expected<void> recorded = ring_.Publish(slot, stream, id, sent ? bytes : SentBytes{}, &copy);
  ForgetPlain(items);
  for (const BatchItem& item : items) {
    if (item.mirror != nullptr && !item.span.empty()) item.mirror->Commit(copy, sent && recorded);
  }
  if (!sent || !recorded) {
    Reached(Mark::kBatchNotSent);
    if (sent) failed_once_enqueued_.AddRelaxed(1);
    return sent ? ErrorOf(recorded) : ErrorOf(sent);
  }
  return CopyOutcome{
      bytes.sent < bytes.asked ? CopyOutcome::Kind::kTrimmed : CopyOutcome::Kind::kIssued,
      bytes.sent};
}

// Makes mirrors forget what the copies without a mirror overwrite: before and after, as
// `SendPlain`.
void StagerCore::ForgetPlain(std::span<const BatchItem> items) noexcept {
  for (const BatchItem& item : items) {
    if (item.mirror == nullptr) registry_->ForgetOverlapping(item.base, item.bytes.bytes());
  }
}

Expected<CopyOutcome> StagerCore::TryCopyBatch(std::span<BatchItem> items, const Stream& stream,
                                               WaitForSlot wait) {
  if (!alive()) return NotAlive();
  HeldSlot held(ring_);
  for (;;) {
    uint64_t wanted = 0;
    {
      MirrorLocks locks;
      if (Expected<void> locked = locks.Lock(items); !locked) return ErrorOf(locked);
      auto outcome = TryBatch(items, stream, held, &wanted);
      if (!outcome || outcome->kind != CopyOutcome::Kind::kWouldBlock) return outcome;
    }
    if (wait == WaitForSlot::kNo) return WouldBlock();
    // Others may use the mirrors while this call waits, so that all is compared anew.
    auto waited = ring_.WaitAndTake(wanted);
    if (!waited) return ErrorOf(waited);
    held.Hold(*waited);
    Reached(Mark::kBatchComparedAnew);
  }
}

Expected<CopyOutcome> StagerCore::CopyBatch(std::span<BatchItem> items, const Stream& stream,
                                            WaitForSlot wait) {
  return Counted(TryCopyBatch(items, stream, wait));
}

}  // namespace h2d::internal
