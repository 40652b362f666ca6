// Kernels and host functions, and what every operation does when its time comes.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "h2d/device/fake/internal/core.h"
#include "h2d/device/fake/internal/cuda_errors.h"

namespace h2d::fake_internal {
namespace {

class InCallback {
 public:
  explicit InCallback(CallbackContext context) noexcept
      : context_(context), outer_(std::exchange(CallbackContext::Current(), &context_)) {}
  ~InCallback() { CallbackContext::Current() = outer_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  CallbackContext context_;
  CallbackContext* outer_;
};

bool Within(DevicePtr ptr, uint64_t bytes, const std::vector<DeviceRange>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const DeviceRange& range) {
    const uint64_t offset = ptr.address() - range.ptr.address();
    return ptr >= range.ptr && offset <= range.bytes && bytes <= range.bytes - offset;
  });
}

}  // namespace

Expected<void> Core::Launch(const Stream& stream, KernelSpec kernel) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kKernel, options_.latencies.host_launch_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kKernel);
  if (!found) return Unexpected(found.error());
  if (Expected<void> ok = ImplicitCapture(**found, true); !ok) return ok;
  const auto spec = std::make_shared<KernelSpec>(std::move(kernel));
  const Expected<bool> captured =
      Captured(**found, [this, spec](const Caller& launcher, SimStream& target) {
        return IssueKernel(launcher, target, spec);
      });
  if (!captured) return Unexpected(captured.error());
  if (*captured) return {};
  return IssueKernel(*caller, **found, spec);
}

Expected<void> Core::IssueKernel(const Caller& caller, SimStream& stream,
                                 const std::shared_ptr<KernelSpec>& kernel) {
  std::vector<std::pair<DeviceAllocation*, MemoryRef>> places;
  for (const std::vector<DeviceRange>* ranges : {&kernel->reads, &kernel->writes}) {
    for (const DeviceRange& range : *ranges) {
      const Expected<DeviceAllocation*> found =
          FindDevice(range.ptr, range.bytes, caller, OpKind::kKernel);
      if (!found) return Unexpected(found.error());
      places.emplace_back(*found, (*found)->Ref(range.ptr.address(), range.bytes));
    }
  }
  OrderWithLegacy(caller, stream);
  std::unique_ptr<Op> op = engine_.NewOp();
  op->info = NewOperation(caller, OpKind::kKernel, stream.lane);
  op->info.object = KernelName(kernel->name);
  op->latency = LatencyOf(caller, kernel->duration);
  op->on_processors = true;
  op->kernel = kernel;
  op->epoch = detector_.BeginIssue(caller.lane, stream.lane);
  if (detector_.enabled()) {
    const Clock& before = detector_.clock(stream.lane);
    const AccessRef access = NewAccess(op->info, op->epoch, before);
    for (size_t i = 0; i < places.size(); ++i) {
      const auto& [allocation, memory] = places[i];
      if (memory.bytes == 0) continue;
      detector_.Access(allocation->shadow, access, memory, i >= kernel->reads.size(),
                       {&before, &before, {}});
    }
  }
  detector_.EndIssue(caller.lane, op->epoch);
  ++counters_.kernels;
  Submit(caller, stream, std::move(op));
  return {};
}

uint32_t Core::KernelName(const std::string& name) {
  if (name.empty()) return 0;
  const auto [it, fresh] =
      kernel_names_.emplace(name, static_cast<uint32_t>(names_.kernels.size()));
  if (fresh) names_.kernels.push_back(name);
  return it->second;
}

Expected<void> Core::LaunchHostFunc(const Stream& stream, std::function<void()> function) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ok;
  if (function == nullptr) return InvalidArgument("The host function is empty.");
  Lock lock;
  const Expected<Caller> caller =
      Enter(lock, OpKind::kHostFunction, options_.latencies.host_launch_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kHostFunction);
  if (!found) return Unexpected(found.error());
  if (Expected<void> ok = ImplicitCapture(**found, true); !ok) return ok;
  const auto shared = std::make_shared<std::function<void()>>(std::move(function));
  const Expected<bool> captured =
      Captured(**found, [this, shared](const Caller& launcher, SimStream& target) {
        return IssueHostFunction(launcher, target, shared);
      });
  if (!captured) return Unexpected(captured.error());
  if (*captured) return {};
  return IssueHostFunction(*caller, **found, shared);
}

Expected<void> Core::IssueHostFunction(const Caller& caller, SimStream& stream,
                                       const std::shared_ptr<std::function<void()>>& function) {
  OrderWithLegacy(caller, stream);
  std::unique_ptr<Op> op = engine_.NewOp();
  op->info = NewOperation(caller, OpKind::kHostFunction, stream.lane);
  op->latency = LatencyOf(caller, options_.latencies.host_record_call);
  op->function = function;
  const Epoch first = detector_.BeginIssue(caller.lane, stream.lane);
  op->clock = std::make_unique<Clock>(detector_.clock(stream.lane));
  op->clock->Set(first.lane, first.time);
  op->epoch = detector_.QueueFunction(first);
  detector_.EndIssue(caller.lane, op->epoch);
  ++counters_.host_functions;
  Submit(caller, stream, std::move(op));
  return {};
}

// --- Execution ---------------------------------------------------------------------------------

void Core::Start(Op& op) {
  for (CopyPart& part : op.parts) {
    if (part.watch_at_start) detector_.Watch(part.block, part.source, part.from, part.bytes);
    const size_t count = part.chunks.size();
    for (size_t i = 0; i < count; ++i) {
      if (part.chunks[i] != ReadTime::kAtStart) continue;
      const size_t begin = part.bytes * i / count;
      const size_t end = part.bytes * (i + 1) / count;
      ReadPart(part, begin, end, op.staged.data());
    }
  }
}

void Core::Complete(Op& op, SimStream& stream) {
  if (op.function != nullptr) {
    RunHostFunction(op, stream);
  } else if (op.kernel != nullptr) {
    RunKernel(op);
  } else {
    CompleteParts(op);
  }
  Note(TracePhase::kComplete, op.info);
}

void Core::CompleteParts(Op& op) {
  for (CopyPart& part : op.parts) {
    const size_t count = part.chunks.size();
    for (size_t i = 0; i < count; ++i) {
      if (part.chunks[i] != ReadTime::kAtEnd) continue;
      const size_t begin = part.bytes * i / count;
      const size_t end = part.bytes * (i + 1) / count;
      ReadPart(part, begin, end, op.staged.data());
    }
    if (part.source != nullptr) detector_.Compare(*part.source, op.info);
  }
  std::vector<size_t> left(op.parts.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  for (size_t turn = 0; turn < op.parts.size(); ++turn) {
    const size_t pick = turn < op.part_order.size() ? op.part_order[turn] : 0;
    const CopyPart& part = op.parts[left[pick]];
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(pick));
    std::memcpy(part.to, op.staged.data() + part.staged, part.bytes);
  }
}

void Core::RunKernel(Op& op) {
  counters_.kernel_time += op.latency;
  if (!op.kernel->run) return;
  const InCallback callback({this, op.info.lane, true, &op});
  op.kernel->run(KernelMemory(*this, &op));
}

// Runs without the device's lock: a host function may take the program's own locks.
void Core::RunHostFunction(Op& op, SimStream& stream) {
  if (detector_.enabled()) detector_.Observe(*op.clock, op.info);
  mutex_.unlock();
  {
    const InCallback callback({this, op.info.lane, false, &op});
    (*op.function)();
  }
  mutex_.lock();
  detector_.FunctionEnded(op.epoch);
  // What it acquired through locks happens before what follows it in its stream.
  if (detector_.enabled()) detector_.clock(stream.lane).Join(*op.clock);
  progressed_.notify_all();
}

std::span<std::byte> Core::KernelBytes(const Op& op, DevicePtr ptr, uint64_t bytes, bool writes) {
  DeviceAllocation* allocation = device_memory_.Find(ptr.address());
  if (allocation == nullptr || allocation->data == nullptr) return {};
  const MemoryRef memory = allocation->Ref(ptr.address(), bytes);
  if (bytes > allocation->bytes - memory.offset) return {};
  const KernelSpec& spec = *op.kernel;
  const bool declared =
      Within(ptr, bytes, spec.writes) || (!writes && Within(ptr, bytes, spec.reads));
  if (!declared) {
    detector_.Report(HazardKind::kUndeclaredAccess, nullptr, &op.info,
                     "the kernel's declaration of these bytes", memory, false, writes);
  }
  return {allocation->data.get() + memory.offset, bytes};
}

}  // namespace h2d::fake_internal
