#include <cstring>
#include <string>
#include <vector>

#include "h2d/bench/device_costs/compare.h"
#include "h2d/bench/device_costs/near_cores.h"
#include "h2d/bench/device_costs/original_ring.h"
#include "h2d/bench/device_costs/rows.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::bench {
namespace {

std::shared_ptr<PinnedStager> StagerOf(const Setting& s, uint64_t bytes, uint32_t initial,
                                       uint32_t most) {
  return Must(PinnedStager::Create(s.device, {.slot_bytes = bytes,
                                              .initial_slots = initial,
                                              .max_slots = most,
                                              .max_pinned_bytes = uint64_t{128} << 20}));
}

// Slots lie one behind the other, as a ring for values of one size has them.
void RawCopy(Setting& s, uint64_t n, const std::vector<int32_t>& values, uint64_t bytes) {
  std::byte* const slot = static_cast<std::byte*>(s.pinned) + n % s.slots * bytes;
  std::memcpy(slot, values.data(), bytes);
  Check(cudaMemcpyAsync(s.There(n), slot, bytes, cudaMemcpyHostToDevice, s.native), "A copy");
  Check(cudaEventRecord(s.native_events[n % s.slots], s.native), "A record");
}

// Contenders with many slots have colder ones: the device has read them since, and the caches hold
// other slots. So a ring is to be compared with one of its size.
void CompareRings(Setting& s, Setting& wide, uint64_t bytes, uint64_t calls) {
  std::vector<int32_t> values(bytes / 4, 1);
  const auto stage = [&](const std::shared_ptr<PinnedStager>& stager) {
    return [&, stager](uint64_t n) {
      values[0] = static_cast<int32_t>(n);
      Must(stager->Copy({DevicePtr(s.There(n)), bytes / 4, 4}, values, *s.stream));
    };
  };
  OriginalRing original(bytes);
  Compare(
      "copies of " + std::to_string(bytes) + " B",
      {{"raw: memcpy + cudaMemcpyAsync + cudaEventRecord, 64 slots",
        [&](uint64_t n) { RawCopy(s, n, values, bytes); }},
       {"raw, 1,024 slots", [&](uint64_t n) { RawCopy(wide, n, values, bytes); }},
       {"backend: memcpy + CopyAsync + Record, 64 slots",
        [&](uint64_t n) {
          std::memcpy(s.Slot(n), values.data(), bytes);
          Must(s.device->CopyAsync(DevicePtr(s.There(n)), {s.Slot(n), bytes}, *s.stream));
          Must(s.device->Record(s.events[n % s.slots], *s.stream));
        }},
       {"stager: Copy, 1,024 slots", stage(StagerOf(s, bytes, 1024, 1024))},
       {"stager: Copy, 64 slots that may grow to 512", stage(StagerOf(s, bytes, 64, 512))},
       {"stager: Copy, 8 slots that may grow to 64", stage(StagerOf(s, bytes, 8, 64))},
       {"original: lock, wait for the next of 8 slots",
        [&](uint64_t n) { original.Copy(s.There(n), values.data(), bytes, s.native); }},
       {"cudaMemcpyAsync from pageable memory",
        [&](uint64_t n) {
          Check(cudaMemcpyAsync(s.There(n), values.data(), bytes, cudaMemcpyHostToDevice, s.native),
                "A copy");
        }}},
      calls);
}

// While a mirror lives, plain copies look whether they overlap it: after `CompareRings`.
void CompareHits(Setting& s, uint64_t bytes) {
  const std::vector<int32_t> values(bytes / 4, 1);
  const std::vector<int32_t> held = values;
  const std::shared_ptr<PinnedStager> stager = StagerOf(s, bytes, 8, 64);
  H2DMirror mirror = Must(stager->NewMirror({DevicePtr(s.There(0)), bytes / 4, 4}));
  Must(stager->Copy(mirror, values, *s.stream));
  Compare("a mirror hit of " + std::to_string(bytes) + " B",
          {{"memcmp + cudaStreamIsCapturing",
            [&](uint64_t) {
              cudaStreamCaptureStatus status;
              Check(cudaStreamIsCapturing(s.native, &status), "is-capturing");
              if (std::memcmp(held.data(), values.data(), bytes) != 0) std::printf("never\n");
            }},
           {"stager: Copy through a mirror that holds the values",
            [&](uint64_t) { Must(stager->Copy(mirror, values, *s.stream)); }}});
}

}  // namespace

void CompareCopies(Setting& setting) {
  Setting wide(setting.device, 1024);
  const std::vector<int32_t> few(64, 1);
  KeepToNearCores([&](uint64_t n) { RawCopy(setting, n, few, 256); });
  for (const uint64_t bytes : {256, 4096, 65536}) {
    CompareRings(setting, wide, bytes, 1000);
    CompareRings(setting, wide, bytes, 50);
    CompareHits(setting, bytes);
  }
}

}  // namespace h2d::bench
