// What the fake reports when host or device use memory or handles in an order that nothing
// guarantees.
#ifndef H2D_DEVICE_FAKE_HAZARD_H_
#define H2D_DEVICE_FAKE_HAZARD_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace h2d {

enum class HazardKind : uint8_t {
  kWriteToSourceInFlight,    // the host writes what a copy may still read (I1)
  kReleaseOfSourceInFlight,  // memory is released while a copy may still read it (I1)
  kUnannouncedWrite,         // the source of a copy in flight changed, and nobody announced a write
  kUnorderedAccess,       // two accesses to the same bytes, one of them a write, without an order
  kUnorderedRecord,       // a query or wait of an event, and a record of it: either may come first
  kUseOfDestroyedHandle,  // a stream or an event that was destroyed
  kUseOfReleasedMemory,   // device or pinned memory that was freed
  kUndeclaredAccess,      // a simulated kernel touches bytes that it did not declare
  kCallFromHostFunction,  // an API call from inside a host function or a kernel
  kDeadlock,              // somebody waits and nothing can run
};

std::string_view ToString(HazardKind kind) noexcept;

// One side of a hazard, in words that are stable from run to run: no addresses of this process.
struct HazardAccess {
  std::string lane;       // who: "task 1", "stream copies"
  std::string operation;  // what: "copy #12 of 64 B from pinned 0 + 128 to device 1 + 0"
  uint64_t number = 0;    // counts the device's operations; the number in `operation`
  std::string memory;     // "pinned 0", "kv table"; empty when no memory is meant
  uint64_t offset = 0;    // the first byte that both touch, in `memory`
  uint64_t bytes = 0;     // and how many
  bool writes = false;
  std::chrono::nanoseconds time{0};  // virtual time of the call
};

struct Hazard {
  HazardKind kind = HazardKind::kUnorderedAccess;
  HazardAccess first;   // the access that the fake saw first; empty lane when there is only one
  HazardAccess second;  // the one that made it a hazard
  std::string missing;  // the edge that would have made it legal, as a sentence

  // Everything above as a few lines of text.
  std::string ToString() const;
};

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_HAZARD_H_
