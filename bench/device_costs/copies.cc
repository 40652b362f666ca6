#include <cstring>
#include <memory>
#include <span>
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

// What people write: slots one behind the other in an allocation of their own, an event for each,
// and each copy takes the next, from loop to loop, whatever still reads it.
class RawRing {
 public:
  RawRing(const Setting& setting, uint64_t slots, uint64_t bytes)
      : s_(setting), bytes_(bytes), events_(slots) {
    Check(cudaMallocHost(reinterpret_cast<void**>(&memory_), slots * bytes), "Allocating a ring");
    for (cudaEvent_t& event : events_)
      Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "Creating an event");
  }
  ~RawRing() {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaFreeHost(memory_);
  }
  RawRing(const RawRing&) = delete;
  RawRing& operator=(const RawRing&) = delete;

  void Copy(std::byte* there, const std::vector<int32_t>& values) {
    const uint64_t index = next_++ % events_.size();
    std::byte* const slot = memory_ + index * bytes_;
    std::memcpy(slot, values.data(), bytes_);
    Check(cudaMemcpyAsync(there, slot, bytes_, cudaMemcpyHostToDevice, s_.native), "A copy");
    Check(cudaEventRecord(events_[index], s_.native), "A record");
  }

 private:
  const Setting& s_;
  const uint64_t bytes_;
  std::vector<cudaEvent_t> events_;
  std::byte* memory_ = nullptr;
  uint64_t next_ = 0;
};

// Contenders with many slots have colder ones: the device has read them since, and the caches hold
// other slots. So each ring is compared with the raw one that is next in size to what it had in
// use.
class Rings {
 public:
  Rings(Setting& setting, uint64_t bytes)
      : s_(setting), bytes_(bytes), values_(bytes / 4, 1), original_(bytes) {}

  void Compare(uint64_t calls) {
    bench::Compare("copies of " + std::to_string(bytes_) + " B",
                   {Raw(64), Raw(256), Raw(512), Raw(1024), Backend(), Stager(1024, 1024),
                    Stager(64, 512), Stager(64, 64), Stager(8, 64), Original(), Pageable()},
                   calls);
  }

 private:
  static std::string RawName(uint64_t slots) {
    return "raw calls, " + std::to_string(slots) + " slots";
  }

  Contender Raw(uint64_t slots) {
    const auto ring = std::make_shared<RawRing>(s_, slots, bytes_);
    return {RawName(slots), [this, ring](uint64_t n) { ring->Copy(s_.There(n), values_); }};
  }

  Contender Backend() {
    return {"backend: memcpy + CopyAsync + Record, 64 slots", [this](uint64_t n) {
              std::byte* const slot = s_.Slot(n, bytes_);
              std::memcpy(slot, values_.data(), bytes_);
              Must(s_.device->CopyAsync(DevicePtr(s_.There(n)), {slot, bytes_}, *s_.stream));
              Must(s_.device->Record(s_.events[n % s_.slots], *s_.stream));
            }};
  }

  Contender Stager(uint32_t initial, uint32_t most) {
    const std::string grows =
        initial < most ? " slots that may grow to " + std::to_string(most) : " slots";
    const auto stager = StagerOf(s_, bytes_, initial, most);
    return {"stager: Copy, " + std::to_string(initial) + grows,
            [this, stager](uint64_t n) {
              values_[0] = static_cast<int32_t>(n);
              Must(stager->Copy({DevicePtr(s_.There(n)), bytes_ / 4, 4}, values_, *s_.stream));
            },
            [stager] {
              const uint32_t used = stager->stats().slots_in_use_most;
              return RawName(used <= 64 ? 64 : used <= 256 ? 256 : used <= 512 ? 512 : 1024);
            },
            [stager] {
              const StagerStats stats = stager->stats();
              return "at most " + std::to_string(stats.slots_in_use_most) +
                     " in use, waited for the device " + std::to_string(stats.slot_waits) +
                     " times";
            }};
  }

  Contender Original() {
    return {"original: lock, wait for the next of 8 slots",
            [this](uint64_t n) { original_.Copy(s_.There(n), values_.data(), bytes_, s_.native); }};
  }

  Contender Pageable() {
    return {"cudaMemcpyAsync from pageable memory", [this](uint64_t n) {
              Check(cudaMemcpyAsync(s_.There(n), values_.data(), bytes_, cudaMemcpyHostToDevice,
                                    s_.native),
                    "A copy");
            }};
  }

  Setting& s_;
  const uint64_t bytes_;
  std::vector<int32_t> values_;
  OriginalRing original_;
};

// Ones at a multiple of 64 bytes, as the mirror's own bytes lie: comparing two that lie differently
// within 32 bytes takes two fifths longer, and where a vector lies is chance.
class AlignedOnes {
 public:
  explicit AlignedOnes(uint64_t bytes) : room_(bytes / 4 + 16, 1), count_(bytes / 4) {}

  std::span<const int32_t> values() const {
    const auto address = reinterpret_cast<uintptr_t>(room_.data());
    return {room_.data() + (64 - address % 64) % 64 / 4, count_};
  }

 private:
  std::vector<int32_t> room_;
  uint64_t count_;
};

// While a mirror lives, plain copies look whether they overlap it: after `CompareRings`.
void CompareHits(Setting& s, uint64_t bytes) {
  const AlignedOnes ones(bytes);
  const AlignedOnes other_ones(bytes);
  const std::span<const int32_t> values = ones.values();
  const std::span<const int32_t> held = other_ones.values();
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
  const std::vector<int32_t> few(64, 1);
  RawRing ring(setting, 64, 256);
  KeepToNearCores([&](uint64_t n) { ring.Copy(setting.There(n), few); });
  for (const uint64_t bytes : {256, 4096, 65536}) {
    Rings(setting, bytes).Compare(1000);
    Rings(setting, bytes).Compare(50);
    CompareHits(setting, bytes);
  }
}

}  // namespace h2d::bench
