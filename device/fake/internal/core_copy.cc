// Copies: where their bytes come from, when these are read, and what they conflict with.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "h2d/device/fake/internal/address_sanitizer.h"
#include "h2d/device/fake/internal/core.h"
#include "h2d/device/fake/internal/cuda_errors.h"

namespace h2d::fake_internal {
namespace {

constexpr uint32_t kMaxChunks = 4;
// A pageable source of this size or more made the call block on an H200.
constexpr uint64_t kPageableBlocksBytes = uint64_t{4} << 20;

}  // namespace

Expected<void> Core::CopyAsync(DevicePtr to, std::span<const std::byte> from,
                               const Stream& stream) {
  if (Expected<void> ok = CheckCopyAsync(identity_, to, from, stream); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kCopy, options_.latencies.host_copy_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kCopy);
  if (!found) return Unexpected(found.error());
  if (from.empty()) return {};
  if (Expected<void> ok = ImplicitCapture(**found, true); !ok) return ok;
  const Expected<bool> captured =
      Captured(**found, [this, to, from](const Caller& launcher, SimStream& target) {
        const CopyEntry entry{to, from};
        return IssueCopies(launcher, target, OpKind::kCopy, {&entry, 1});
      });
  if (!captured) return Unexpected(captured.error());
  if (*captured) return {};
  const CopyEntry entry{to, from};
  return IssueCopies(*caller, **found, OpKind::kCopy, {&entry, 1});
}

Expected<void> Core::CopyBatchAsync(std::span<const CopyEntry> entries, const Stream& stream) {
  if (Expected<void> ok = CheckCopyBatchAsync(identity_, entries, stream); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kBatch, options_.latencies.host_copy_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kBatch);
  if (!found) return Unexpected(found.error());
  if ((*found)->capture == nullptr) return IssueCopies(*caller, **found, OpKind::kBatch, entries);
  const std::vector<CopyEntry> kept(entries.begin(), entries.end());
  const Expected<bool> captured =
      Captured(**found, [this, kept](const Caller& launcher, SimStream& target) {
        return IssueCopies(launcher, target, OpKind::kBatch, kept);
      });
  if (!captured) return Unexpected(captured.error());
  return {};
}

Expected<Core::SourcePlace> Core::FindSource(std::span<const std::byte> source,
                                             const Caller& caller, OpKind kind) {
  PinnedBlock* block = pinned_memory_.Find(source.data());
  if (block == nullptr) {
    if (device_memory_.Find(reinterpret_cast<uintptr_t>(source.data())) != nullptr) {
      return InvalidArgument("The source of the copy lies in device memory.");
    }
    return SourcePlace{nullptr, {MemorySpaceKind::kPageable, 0, 0, source.size()}};
  }
  const MemoryRef memory = block->Ref(source.data(), source.size());
  const std::string& name = names_.Of(memory);
  if (memory.offset + source.size() > block->used) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "The source of " + std::to_string(source.size()) + " bytes at offset " +
                         std::to_string(memory.offset) + " ends outside '" + name + "'.",
                     cuda_errors::kInvalidValue);
  }
  if (block->cached) {
    OperationInfo info = NewCall(caller, kind);
    info.source = memory;
    detector_.Report(HazardKind::kUseOfReleasedMemory, nullptr, &info, name + " was released",
                     memory);
    return InvalidArgument("The pinned memory '" + name + "' was released.");
  }
  return SourcePlace{block, memory};
}

AccessRef Core::NewAccess(const OperationInfo& info, Epoch epoch, const Clock& before) {
  auto access = std::make_shared<Access>();
  access->op = info;
  access->epoch = epoch;
  access->called = detector_.Moment(info.caller);
  if (detector_.functions_queued()) access->before = std::make_unique<Clock>(before);
  return access;
}

Time Core::LatencyOf(const Caller& caller, Time nominal) {
  constexpr int64_t kFactors[] = {1, 0, 8, 64};
  return nominal * kFactors[Choose(caller, ChoiceSite::kLatency, 4)];
}

std::vector<ReadTime> Core::ChooseReads(const Caller& caller, uint64_t bytes, bool pinned) {
  const auto at_call = [&] {
    // A host function that is still to run may write the source, in stream order: not before it.
    return detector_.functions_queued() ? ReadTime::kAtStart : ReadTime::kAtCall;
  };
  const auto of = [&](uint32_t choice) {
    return choice == 0 ? at_call() : choice == 1 ? ReadTime::kAtStart : ReadTime::kAtEnd;
  };
  if (!pinned) return {ReadTime::kAtEnd};
  const uint32_t choice = Choose(caller, ChoiceSite::kSourceRead, 4);
  if (choice < 3) {
    const ReadTime time = of(choice);
    if (time == ReadTime::kAtCall) return {};
    return {time};
  }
  std::vector<ReadTime> chunks(std::min<uint64_t>(kMaxChunks, bytes));
  for (ReadTime& chunk : chunks) chunk = of(Choose(caller, ChoiceSite::kTornChunk, 3));
  return chunks;
}

void Core::AddPart(const Caller& caller, Op& op, const EnqueuedCopy& copy, const CopyEntry& entry,
                   const Order& order) {
  const uint64_t bytes = entry.source.size();
  const bool pinned = copy.source.block != nullptr;
  CopyPart part;
  part.to = copy.allocation->data.get() + copy.destination.offset;
  part.from = entry.source.data();
  part.bytes = bytes;
  part.block = copy.source.block;
  part.staged = op.staged.size();
  op.staged.resize(part.staged + bytes);
  ReadPart(part, 0, bytes, op.staged.data());
  OperationInfo info = op.info;
  info.source = copy.source.ref;
  info.destination = copy.destination;
  if (detector_.enabled()) {
    const AccessRef write = NewAccess(info, op.epoch, *order.operation);
    detector_.Access(copy.allocation->shadow, write, copy.destination, true,
                     {order.operation, order.operation, {}});
    if (pinned) {
      part.source = NewAccess(info, op.epoch, *order.operation);
      part.source->source_read = true;
      copy.source.block->shadow.ForEachRead(
          info.source.offset, info.source.offset + bytes,
          [&](Access& earlier) { detector_.Compare(earlier, info); });
      detector_.Access(copy.source.block->shadow, part.source, info.source, false, order);
      part.watch_at_start = detector_.functions_queued();
      if (!part.watch_at_start) detector_.Watch(part.block, part.source, part.from, bytes);
    }
  }
  if (pinned || copy.late) part.chunks = ChooseReads(caller, bytes, pinned);
  op.parts.push_back(std::move(part));
}

Expected<void> Core::IssueCopies(const Caller& caller, SimStream& stream, OpKind kind,
                                 std::span<const CopyEntry> entries) {
  std::vector<EnqueuedCopy> copies;
  copies.reserve(entries.size());
  uint64_t bytes = 0;
  bool blocks = false;
  for (const CopyEntry& entry : entries) {
    const uint64_t size = entry.source.size();
    const Expected<DeviceAllocation*> to = FindDevice(entry.destination, size, caller, kind);
    if (!to) return Unexpected(to.error());
    const Expected<SourcePlace> from = FindSource(entry.source, caller, kind);
    if (!from) return Unexpected(from.error());
    // A pageable source is captured at the call, or the call blocks, or it is read late.
    const uint32_t pageable = from->block == nullptr ? Choose(caller, ChoiceSite::kPageable, 3) : 0;
    copies.push_back({*to, (*to)->Ref(entry.destination.address(), size), *from, pageable == 2});
    bytes += size;
    const bool large = size >= kPageableBlocksBytes;
    blocks = blocks || (from->block == nullptr ? pageable == (large ? 0U : 1U) : confidential_);
  }
  OrderWithLegacy(caller, stream);
  std::unique_ptr<Op> op = engine_.NewOp();
  op->info = NewOperation(caller, kind, stream.lane);
  op->info.source = copies.front().source.ref;
  op->info.destination = copies.front().destination;
  op->latency = LatencyOf(caller, options_.latencies.copy);
  op->link_bytes = bytes;
  op->epoch = detector_.BeginIssue(caller.lane, stream.lane);
  const Order order{&detector_.clock(caller.lane), &detector_.clock(stream.lane), {}};
  op->staged.reserve(bytes);
  for (size_t i = 0; i < copies.size(); ++i) AddPart(caller, *op, copies[i], entries[i], order);
  detector_.EndIssue(caller.lane, op->epoch);
  for (uint32_t left = static_cast<uint32_t>(copies.size()); copies.size() > 1 && left > 0;
       --left) {
    op->part_order.push_back(Choose(caller, ChoiceSite::kBatchOrder, left));
  }
  (kind == OpKind::kCopy ? counters_.copies : counters_.batches) += 1;
  if (kind == OpKind::kBatch) counters_.batch_copies += entries.size();
  counters_.bytes_copied += bytes;
  Submit(caller, stream, std::move(op));
  if (blocks) BlockUntilDone(stream);
  return {};
}

void Core::Submit(const Caller& caller, SimStream& stream, std::unique_ptr<Op> op) {
  Note(TracePhase::kCall, op->info);
  fruitless_queries_ = 0;
  engine_.Enqueue(stream, std::move(op));
  progressed_.notify_all();
  if (Choose(caller, ChoiceSite::kStuck, 2) != 0) engine_.Jam(stream);
  if (Choose(caller, ChoiceSite::kEnqueueBlocks, 2) != 0) BlockUntilDone(stream);
}

// A call may block until its stream has carried it out. When only the host could make that happen
// (a held stream) the real call would not return; a simulated one does.
void Core::BlockUntilDone(SimStream& stream) {
  const MarkerRef tail = engine_.TailOf(stream);
  while (!tail->complete && engine_.Step(kForever)) {
  }
}

Expected<void> Core::ReadBack(DevicePtr ptr, std::span<std::byte> bytes, const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kReadBack, options_.latencies.host_copy_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kReadBack);
  if (!found) return Unexpected(found.error());
  if (bytes.empty()) return {};
  SimStream& target = **found;
  if (target.capture != nullptr) {
    return FailedPrecondition("The stream to read back on is under capture.");
  }
  const Expected<DeviceAllocation*> from =
      FindDevice(ptr, bytes.size(), *caller, OpKind::kReadBack);
  if (!from) return Unexpected(from.error());
  OrderWithLegacy(*caller, target);
  std::unique_ptr<Op> op = engine_.NewOp();
  op->info = NewOperation(*caller, OpKind::kReadBack, target.lane);
  op->info.source = (*from)->Ref(ptr.address(), bytes.size());
  op->latency = options_.latencies.copy;
  op->epoch = detector_.BeginIssue(caller->lane, target.lane);
  const Clock& before = detector_.clock(target.lane);
  if (detector_.enabled()) {
    detector_.Access((*from)->shadow, NewAccess(op->info, op->epoch, before), op->info.source,
                     false, {&before, &before, {}});
  }
  detector_.EndIssue(caller->lane, op->epoch);
  const Clock seen = detector_.clock(target.lane);
  const OperationInfo info = op->info;
  const auto landing = std::make_shared<std::vector<std::byte>>(bytes.size());
  CopyPart part;
  part.to = landing->data();
  part.from = (*from)->data.get() + info.source.offset;
  part.bytes = bytes.size();
  part.chunks = {ReadTime::kAtEnd};
  op->staged.resize(bytes.size());
  op->parts.push_back(std::move(part));
  op->keep = landing;  // also when the wait below fails
  Submit(*caller, target, std::move(op));
  const MarkerRef tail = engine_.TailOf(target);
  if (Expected<void> ok = WaitForMarker(lock, *caller, tail, info); !ok) return ok;
  detector_.Acquire(caller->lane, seen, info);
  LandReadBack(*caller, info, *landing, bytes.data());
  return {};
}

// The bytes reach the host while the call lasts. In pinned memory that is a write like any other.
void Core::LandReadBack(const Caller& caller, OperationInfo info,
                        const std::vector<std::byte>& bytes, std::byte* to) {
  PinnedBlock* block = pinned_memory_.Find(to);
  if (block != nullptr) {
    if (!block->cached) UnpoisonBytes(to, bytes.size());  // it is judged here
    info.lane = caller.lane;
    info.destination = block->Ref(to, bytes.size());
    JudgeHostAccess(caller, *block, info, info.destination, true);
  }
  std::copy(bytes.begin(), bytes.end(), to);
}

}  // namespace h2d::fake_internal
