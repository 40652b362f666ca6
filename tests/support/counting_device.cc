#include "h2d/tests/support/counting_device.h"

namespace h2d::testing {

DeviceCalls operator-(const DeviceCalls& after, const DeviceCalls& before) noexcept {
  return {.allocations = after.allocations - before.allocations,
          .trims = after.trims - before.trims,
          .copies = after.copies - before.copies,
          .batches = after.batches - before.batches,
          .events = after.events - before.events,
          .records = after.records - before.records,
          .queries = after.queries - before.queries,
          .waits = after.waits - before.waits,
          .looks = after.looks - before.looks,
          .stream_waits = after.stream_waits - before.stream_waits,
          .inspections = after.inspections - before.inspections,
          .announcements = after.announcements - before.announcements};
}

DeviceCalls& CallsOfThisThread() noexcept {
  thread_local DeviceCalls calls;
  return calls;
}

}  // namespace h2d::testing
