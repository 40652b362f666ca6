// Pinned and device memory: allocation, release, and the host's own accesses.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "h2d/device/fake/internal/address_sanitizer.h"
#include "h2d/device/fake/internal/core.h"
#include "h2d/device/fake/internal/cuda_errors.h"

namespace h2d::fake_internal {
namespace {

constexpr Time kCacheHit{100};
constexpr Time kSlowAllocation{20'000'000};
// 64 KiB took 34 us, 1 MiB 840 us: about 0.8 ns a byte above the first 64 KiB.
constexpr uint64_t kFirstBytes = uint64_t{64} << 10;

Time AllocationTime(Time nominal, uint64_t bytes) {
  const uint64_t more = bytes > kFirstBytes ? bytes - kFirstBytes : 0;
  return nominal + Time(static_cast<int64_t>(more / 5 * 4));
}

}  // namespace

Expected<PinnedBuffer> Core::AllocatePinned(std::shared_ptr<Core> self, uint64_t bytes, bool raw) {
  if (Expected<void> ok = CheckAllocatePinned(identity_, bytes); !ok) return ErrorOf(ok);
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kAllocatePinned, kCacheHit);
  if (!caller) return Unexpected(caller.error());
  if (raw) {
    Expected<void> ok = ForbiddenByCaptures(*caller, OpKind::kAllocatePinned);
    if (!ok) return ErrorOf(ok);
  }
  bool fresh = false;
  Expected<PinnedBlock*> block = pinned_memory_.Allocate(bytes, names_, fresh);
  if (!block) return ErrorOf(block);
  ++counters_.pinned_allocations;
  if (fresh) {
    ++counters_.pinned_driver_allocations;
    const bool slow = Choose(*caller, ChoiceSite::kAllocation, 2) != 0;
    const Time takes = slow ? kSlowAllocation
                            : AllocationTime(options_.latencies.host_allocation, (*block)->bytes);
    engine_.AdvanceTo(engine_.now() + takes);
  }
  OperationInfo info = NewCall(*caller, OpKind::kAllocatePinned);
  info.destination = (*block)->Ref((*block)->data.get(), bytes);
  Note(TracePhase::kCall, info);
  // Whoever gets the block comes after whoever gave it back, as the cache's own lock sees to.
  detector_.Acquire(caller->lane, (*block)->released, info);
  std::byte* data = (*block)->data.get();
  lock.unlock();
  return PinnedBuffer::ForBackend(std::move(self), data, bytes);
}

void Core::ReleasePinned(std::byte* data, uint64_t bytes) noexcept {
  Lock lock;
  Expected<Caller> caller = Enter(lock, OpKind::kReleasePinned, kCacheHit);
  if (!caller) {  // a dead device or a callback: the memory stays as it is, for good
    return;
  }
  PinnedBlock* block = pinned_memory_.Find(data);
  if (block == nullptr || block->cached) return;
  OperationInfo info = NewCall(*caller, OpKind::kReleasePinned);
  info.destination = block->Ref(data, bytes);
  Note(TracePhase::kCall, info);
  bool quiet = false;
  if (detector_.enabled()) {
    const Clock& clock = detector_.clock(caller->lane);
    const AccessRef access = NewAccess(info, detector_.Moment(caller->lane), clock);
    access->by_host = true;
    quiet = detector_.ReleaseBlock(*block, access, {&clock, &clock, {}});
    block->released = clock;
    detector_.Tick(caller->lane);
  }
  pinned_memory_.Release(*block, quiet);
  ++counters_.pinned_releases;
}

Expected<void> Core::Trim(bool raw) {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kTrim, kCacheHit);
  if (!caller) return Unexpected(caller.error());
  if (raw) {
    if (Expected<void> ok = ForbiddenByCaptures(*caller, OpKind::kTrim); !ok) return ok;
  }
  const OperationInfo info = NewCall(*caller, OpKind::kTrim);
  Note(TracePhase::kCall, info);
  const bool waits = Choose(*caller, ChoiceSite::kFree, 2) == 0;
  if (waits) {
    if (Expected<void> ok = WaitForDevice(lock, *caller, info); !ok) return ok;
  }
  // Also after the wait: other tasks may have enqueued meanwhile.
  pinned_memory_.FreeCached(/*in_use=*/engine_.queued() != 0);
  return {};
}

Expected<MemoryKind> Core::KindOf(std::span<const std::byte> memory) {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kOther, options_.latencies.host_inspect_call);
  if (!caller) return Unexpected(caller.error());
  if (memory.empty()) return MemoryKind::kPageable;
  if (device_memory_.Find(reinterpret_cast<uintptr_t>(memory.data())) != nullptr) {
    return InvalidArgument("The memory begins in device memory.");
  }
  const PinnedBlock* block = pinned_memory_.Find(memory.data());
  const bool pinned = block != nullptr && block->Holds(memory);
  return pinned ? MemoryKind::kPinned : MemoryKind::kPageable;
}

void Core::OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept {
  if (!in_own_process() || bytes.empty()) return;
  Caller caller = WhoCalls();
  const CallbackContext* callback = CallbackContext::Current();
  if (callback != nullptr && callback->core != this) callback = nullptr;
  if (callback != nullptr && callback->op->clock == nullptr) return;  // a kernel: not the host
  if (callback == nullptr && caller.scheduler != nullptr) caller.scheduler->Point();
  const Lock lock = LockUnlessInKernel();
  PinnedBlock* block = pinned_memory_.Find(bytes.data());
  if (block == nullptr || !block->Holds(bytes.data())) return;
  // It is announced, and judged below: no matter for a sanitizer.
  const uint64_t room = static_cast<uint64_t>(block->data.get() + block->used - bytes.data());
  const uint64_t size = std::min<uint64_t>(bytes.size(), room);
  if (!block->cached) UnpoisonBytes(bytes.data(), size);
  if (callback != nullptr) caller.lane = callback->lane;
  const bool writes = access == HostAccess::kWrite;
  OperationInfo info = NewCall(caller, writes ? OpKind::kHostWrite : OpKind::kHostRead);
  const MemoryRef memory = block->Ref(bytes.data(), size);
  (writes ? info.destination : info.source) = memory;
  Note(TracePhase::kCall, info);
  if (callback != nullptr && detector_.enabled() && !block->cached) {
    const Clock& clock = *callback->op->clock;
    const Epoch moment{caller.lane, clock.at(caller.lane)};
    const AccessRef made = NewAccess(info, moment, clock);
    detector_.Access(block->shadow, made, memory, writes, {&clock, &clock, moment});
    return;
  }
  JudgeHostAccess(caller, *block, info, memory, writes);
}

void Core::JudgeHostAccess(const Caller& caller, PinnedBlock& block, const OperationInfo& info,
                           const MemoryRef& memory, bool writes) {
  if (!detector_.enabled()) return;
  if (block.cached) {
    detector_.Report(HazardKind::kUseOfReleasedMemory, nullptr, &info,
                     names_.pinned[block.id] + " was released", memory, false, writes);
    return;
  }
  const Clock& clock = detector_.clock(caller.lane);
  const AccessRef made = NewAccess(info, detector_.Moment(caller.lane), clock);
  made->by_host = true;
  detector_.Access(block.shadow, made, memory, writes, {&clock, &clock, {}});
}

Expected<DevicePtr> Core::AllocateDevice(uint64_t bytes, std::string_view name) {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kAllocateDevice, kCacheHit);
  if (!caller) return Unexpected(caller.error());
  Expected<DeviceAllocation*> made = device_memory_.Allocate(bytes, name, names_);
  if (!made) return ErrorOf(made);
  ++counters_.device_allocations;
  OperationInfo info = NewCall(*caller, OpKind::kAllocateDevice);
  info.destination = (*made)->Ref((*made)->base, bytes);
  Note(TracePhase::kCall, info);
  return DevicePtr((*made)->base);
}

Expected<void> Core::FreeDevice(DevicePtr ptr) {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kFreeDevice, kCacheHit);
  if (!caller) return Unexpected(caller.error());
  const Expected<DeviceAllocation*> found = FindDevice(ptr, 1, *caller, OpKind::kFreeDevice);
  if (!found) return Unexpected(found.error());
  DeviceAllocation& allocation = **found;
  if (allocation.base != ptr.address()) {
    return InvalidArgument("The pointer to free is " +
                           std::to_string(ptr.address() - allocation.base) +
                           " bytes behind the start of its allocation.");
  }
  OperationInfo info = NewCall(*caller, OpKind::kFreeDevice);
  info.destination = allocation.Ref(allocation.base, allocation.bytes);
  Note(TracePhase::kCall, info);
  const Clock called = detector_.clock(caller->lane);
  const Epoch moment = detector_.Moment(caller->lane);
  if (Expected<void> ok = WaitForDevice(lock, *caller, info); !ok) return ok;
  // Another task may have freed it during the wait, or enqueued work that uses it.
  if (auto again = FindDevice(ptr, 1, *caller, OpKind::kFreeDevice); !again) return ErrorOf(again);
  if (detector_.enabled()) {
    const AccessRef access = NewAccess(info, moment, called);
    access->by_host = true;
    detector_.Access(allocation.shadow, access, info.destination, true,
                     {.call = &called, .operation = &called, .frees = true});
  }
  device_memory_.Free(allocation, /*in_use=*/engine_.queued() != 0);
  ++counters_.device_frees;
  return {};
}

Expected<DeviceAllocation*> Core::FindDevice(DevicePtr ptr, uint64_t bytes, const Caller& caller,
                                             OpKind kind) {
  DeviceAllocation* allocation = device_memory_.Find(ptr.address());
  if (allocation == nullptr) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "The address " + std::to_string(ptr.address()) + " lies in no allocation of the device.",
        cuda_errors::kInvalidValue);
  }
  const MemoryRef memory = allocation->Ref(ptr.address(), bytes);
  const std::string& name = names_.Of(memory);
  if (allocation->data == nullptr) {
    OperationInfo info = NewCall(caller, kind);
    info.destination = memory;
    detector_.Report(HazardKind::kUseOfReleasedMemory, nullptr, &info, name + " was freed", memory,
                     false, true);
    return MakeError(ErrorCode::kInvalidArgument, "The device memory '" + name + "' was freed.",
                     cuda_errors::kInvalidValue);
  }
  if (bytes > allocation->bytes - memory.offset) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "The range of " + std::to_string(bytes) + " bytes at offset " +
                         std::to_string(memory.offset) + " ends outside '" + name +
                         "', which has " + std::to_string(allocation->bytes) + " bytes.",
                     cuda_errors::kInvalidValue);
  }
  return allocation;
}

Expected<void> Core::Peek(DevicePtr ptr, std::span<std::byte> bytes) {
  const Lock lock = LockUnlessInKernel();
  const Expected<DeviceAllocation*> found =
      FindDevice(ptr, bytes.size(), WhoCalls(), OpKind::kOther);
  if (!found) return Unexpected(found.error());
  std::copy_n((*found)->data.get() + (ptr.address() - (*found)->base), bytes.size(), bytes.data());
  return {};
}

Expected<void> Core::Poke(DevicePtr ptr, std::span<const std::byte> bytes) {
  const Lock lock = LockUnlessInKernel();
  const Expected<DeviceAllocation*> found =
      FindDevice(ptr, bytes.size(), WhoCalls(), OpKind::kOther);
  if (!found) return Unexpected(found.error());
  std::copy_n(bytes.data(), bytes.size(), (*found)->data.get() + (ptr.address() - (*found)->base));
  return {};
}

}  // namespace h2d::fake_internal
