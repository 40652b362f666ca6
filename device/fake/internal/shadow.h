// Who touched which bytes: the memory of the race detector, for one allocation.
#ifndef H2D_DEVICE_FAKE_INTERNAL_SHADOW_H_
#define H2D_DEVICE_FAKE_INTERNAL_SHADOW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "h2d/device/fake/internal/clock.h"
#include "h2d/device/fake/internal/operation_info.h"

namespace h2d::fake_internal {

struct PinnedBlock;

// One operation's use of memory.
struct Access {
  OperationInfo op;
  Epoch epoch;           // when it ends: what must have been seen for a later access to be ordered
  Epoch called;          // the call that it is part of, on the host lane that made it
  bool by_host = false;  // on a host lane, not a stream's
  bool source_read = false;  // a copy reads its source: at any time from the call on
  bool reported = false;     // already part of a hazard
  // A source read's bytes as of the call, until the host has observed the copy's completion.
  const std::byte* from = nullptr;
  std::vector<std::byte> expected;
  PinnedBlock* block = nullptr;  // where they lie
  // What happened before it; kept only while host functions are queued, whose accesses become known
  // after those of operations enqueued later.
  std::unique_ptr<Clock> before;
};
using AccessRef = std::shared_ptr<Access>;

// What happens before the access that is being judged.
struct Order {
  // For an access on a host lane to be ordered before a copy's source read it must happen before
  // the *call*; for all else, before the operation. They differ only for source reads.
  const Clock* call = nullptr;
  const Clock* operation = nullptr;
  // The moment of the host function that runs now and makes the access, else time 0: it may lie
  // before one that is already known.
  Epoch host_function{};
  // A free, which waits for all work that was enqueued before it, and for none that was not.
  bool frees = false;
  // The ends of host functions that are still to run; set by the detector.
  std::span<const Epoch> functions{};

  bool Before(const Access& known) const noexcept {
    if (frees) return call->Contains(known.called);
    const Clock& clock = known.by_host ? *call : *operation;
    if (clock.Contains(known.epoch)) return true;
    if (host_function.time == 0) return false;
    if (known.epoch.lane == host_function.lane) return true;  // later work of its stream
    return known.before != nullptr && known.before->Contains(host_function);
  }
  // Whether a host function that is still to run comes before `fresh` and not before `known`.
  bool FunctionBetween(const Access& known, const Access& fresh) const noexcept {
    if (fresh.before == nullptr) return false;  // none was queued
    return std::any_of(functions.begin(), functions.end(), [&](Epoch function) {
      return fresh.before->Contains(function) &&
             (known.before == nullptr || !known.before->Contains(function));
    });
  }
};

// Two unordered accesses to [begin, end), one of them a write. `known` came first.
class ConflictSink {
 public:
  virtual void OnConflict(const AccessRef& known, const AccessRef& fresh, bool fresh_writes,
                          bool known_writes, uint64_t begin, uint64_t end) = 0;

 protected:
  ~ConflictSink() = default;
};

// Byte ranges to their last write and the reads since. Reads that happen before a later read are
// forgotten: whoever is ordered after the later one is ordered after both. Not so a host function
// that is still to run, and comes before the later one: then both are kept. Memory: one segment for
// each range told apart; a write makes its range one segment again.
class Shadow {
 public:
  void Read(uint64_t begin, uint64_t end, const AccessRef& access, const Order& order,
            ConflictSink& sink);
  void Write(uint64_t begin, uint64_t end, const AccessRef& access, const Order& order,
             ConflictSink& sink);
  // Calls `visit` for each read that touches [begin, end).
  template <class Visit>
  void ForEachRead(uint64_t begin, uint64_t end, const Visit& visit) const {
    auto it = segments_.upper_bound(begin);
    if (it != segments_.begin()) --it;
    for (; it != segments_.end() && it->first < end; ++it) {
      if (it->second.end <= begin) continue;
      for (const AccessRef& read : it->second.reads) visit(*read);
    }
  }
  void Clear() { segments_.clear(); }
  size_t segments() const noexcept { return segments_.size(); }

 private:
  struct Segment {
    uint64_t end = 0;
    AccessRef write;
    std::vector<AccessRef> reads;
    // The last write of a host lane when `write`, by a host function, came after it: a source read
    // that is ordered after the function need not be ordered after that.
    AccessRef host_write;

    const AccessRef& LastHostWrite() const noexcept {
      return write != nullptr && write->by_host ? write : host_write;
    }
  };
  using Map = std::map<uint64_t, Segment>;

  // Cuts the segment that holds `at` in its inside, so that one begins there.
  void SplitAt(uint64_t at);
  Map::iterator FirstInside(uint64_t begin, uint64_t end);
  void WriteEach(Map::iterator first, uint64_t begin, uint64_t end, const AccessRef& access);
  static void AddRead(Segment& segment, const AccessRef& access, const Order& order);

  Map segments_;  // by first byte
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_SHADOW_H_
