// Happens-before: the lanes' clocks, and the hazards found with them.
#ifndef H2D_DEVICE_FAKE_INTERNAL_DETECTOR_H_
#define H2D_DEVICE_FAKE_INTERNAL_DETECTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "h2d/device/fake/hazard.h"
#include "h2d/device/fake/internal/clock.h"
#include "h2d/device/fake/internal/memory.h"
#include "h2d/device/fake/internal/operation_info.h"
#include "h2d/device/fake/internal/shadow.h"

namespace h2d::fake_internal {

class Detector final : private ConflictSink {
 public:
  struct Options {
    bool enabled = true;
    size_t max_hazards = 0;
    bool poison_sources = true;  // under address sanitizer
  };

  Detector(const Options& options, Names& names) : options_(options), names_(names) {}

  bool enabled() const noexcept { return options_.enabled; }

  // --- Lanes -----------------------------------------------------------------------------------
  LaneIndex AddHostLane(std::string name);
  LaneIndex AddStreamLane(std::string name);
  Clock& clock(LaneIndex lane) noexcept { return lanes_[lane].clock; }

  // The lane's present moment: what an access of its own, made now, is known by.
  Epoch Moment(LaneIndex lane) const noexcept { return {lane, lanes_[lane].clock.at(lane)}; }
  // What follows on the lane is no longer part of what others have acquired from it.
  void Tick(LaneIndex lane);

  // `lane` has seen all that `clock` holds; sources whose copies it has thereby seen complete are
  // compared a last time.
  void Acquire(LaneIndex lane, const Clock& clock, const OperationInfo& now);
  // The second half of it alone, for a host function that runs now.
  void Observe(const Clock& clock, const OperationInfo& now);

  // A new operation on the stream's lane, issued by `host`: answers its epoch. `EndIssue` makes the
  // lane's clock include it; between the two the lane's clock is what happens before the operation.
  Epoch BeginIssue(LaneIndex host, LaneIndex stream);
  void EndIssue(LaneIndex host, Epoch epoch);

  // A host function takes a range of its stream's times instead of one: what it hands on while it
  // runs holds what it did before only, and what follows it in its stream holds all of it. After as
  // many releases it stays at the last. `first` is what `BeginIssue` answered; answers the end.
  Epoch QueueFunction(Epoch first);
  void FunctionEnded(Epoch end);
  bool functions_queued() const noexcept { return !functions_.empty(); }

  // --- Accesses --------------------------------------------------------------------------------
  void Access(Shadow& shadow, const AccessRef& access, const MemoryRef& memory, bool writes,
              Order order);
  // A release counts as a write of the whole block. False when copies may still read it.
  bool ReleaseBlock(PinnedBlock& block, const AccessRef& access, const Order& order);

  // --- Sources that nobody may change ------------------------------------------------------------
  // Keeps the bytes of `access`, a source read at `from`, to compare them until the host has
  // observed the copy's completion or too many bytes are kept; so long it is poisoned.
  void Watch(PinnedBlock* block, const AccessRef& access, const std::byte* from, uint64_t bytes);
  // Compares what is kept of `access` with memory now; `now` is what the comparison is part of.
  void Compare(h2d::fake_internal::Access& access, const OperationInfo& now);

  // --- Hazards ---------------------------------------------------------------------------------
  void Report(HazardKind kind, const OperationInfo* first, const OperationInfo* second,
              std::string missing, const MemoryRef& memory = {}, bool first_writes = false,
              bool second_writes = false);
  const std::vector<Hazard>& hazards() const noexcept { return hazards_; }
  uint64_t count() const noexcept { return count_; }
  void Clear();

 private:
  struct Lane {
    Clock clock;
    std::deque<AccessRef> watched;  // of a stream, in the order of its copies
  };

  void OnConflict(const AccessRef& known, const AccessRef& fresh, bool fresh_writes,
                  bool known_writes, uint64_t begin, uint64_t end) override;
  std::string MissingEdge(HazardKind kind, const h2d::fake_internal::Access& known,
                          const h2d::fake_internal::Access& fresh) const;
  static void MarkReported(PinnedBlock& block, uint64_t begin, uint64_t end);
  LaneIndex AddLane(std::string name, uint32_t time);
  void Forget(h2d::fake_internal::Access& access);
  void ForgetOldest(LaneIndex lane);

  static constexpr uint64_t kMaxWatchedBytes = uint64_t{64} << 20;

  const Options options_;
  Names& names_;
  std::vector<Lane> lanes_;
  std::vector<Epoch> functions_;          // the ends of host functions still to run
  std::vector<uint32_t> oldest_watched_;  // by lane: the time of the first of `watched`
  std::vector<Hazard> hazards_;
  uint64_t count_ = 0;
  std::set<std::tuple<HazardKind, uint64_t, uint64_t>> seen_;
  uint64_t watched_bytes_ = 0;
  MemoryRef judged_;  // what `OnConflict` is about
  bool releasing_ = false;
  bool conflict_ = false;  // found by the access that is being judged
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_DETECTOR_H_
