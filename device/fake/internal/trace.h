// What happened, in order: a hash of all of it, and the newest part of it to show.
#ifndef H2D_DEVICE_FAKE_INTERNAL_TRACE_H_
#define H2D_DEVICE_FAKE_INTERNAL_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "h2d/device/fake/choice.h"
#include "h2d/device/fake/internal/engine.h"
#include "h2d/device/fake/internal/operation_info.h"

namespace h2d::fake_internal {

enum class TracePhase : uint8_t { kCall, kComplete, kPending, kDone };

struct TraceRecord {
  Time time{0};
  TracePhase phase = TracePhase::kCall;
  OperationInfo op;
};

class Trace {
 public:
  Trace(bool keep, size_t max_records) : keep_(keep), max_records_(max_records) {}

  void Add(Time time, TracePhase phase, const OperationInfo& op) {
    Fold(static_cast<uint64_t>(time.count()));
    Fold(static_cast<uint64_t>(phase) << 56 | static_cast<uint64_t>(op.kind) << 48 |
         static_cast<uint64_t>(op.lane) << 24 | op.caller);
    Fold(op.number << 20 | op.object);
    FoldMemory(op.source);
    FoldMemory(op.destination);
    if (!keep_ || max_records_ == 0) return;
    if (records_.size() == max_records_) records_.pop_front();
    records_.push_back({time, phase, op});
  }
  void AddChoice(uint64_t operation, ChoiceSite site, uint32_t answer) {
    Fold(operation << 8 | static_cast<uint64_t>(site));
    Fold(answer);
  }

  uint64_t hash() const noexcept { return MixBits(hash_); }
  const std::deque<TraceRecord>& records() const noexcept { return records_; }

 private:
  void Fold(uint64_t x) noexcept {
    hash_ = (hash_ ^ x) * 0x9fb21c651e98df25ULL;
    hash_ ^= hash_ >> 29;
  }
  void FoldMemory(const MemoryRef& memory) noexcept {
    if (memory.space == MemorySpaceKind::kNone) return;
    Fold(static_cast<uint64_t>(memory.space) << 32 | memory.id);
    Fold(memory.offset);
    Fold(memory.bytes);
  }

  bool keep_;
  size_t max_records_;
  uint64_t hash_ = 0x243f6a8885a308d3ULL;
  std::deque<TraceRecord> records_;
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_TRACE_H_
