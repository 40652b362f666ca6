// How a release queue learns what has been read, and how it waits.
#include <algorithm>
#include <string>
#include <utility>

#include "h2d/stager/internal/release_core.h"

namespace h2d::internal {

// Moves the sources of complete batches to `out`, oldest batch first, up to the first that is
// pending: a younger one that is complete already waits for the next look.
Expected<void> ReleaseCore::CollectOne(StreamQueue& queue, std::vector<Held>& out) {
  while (!queue.in_flight.empty()) {
    const BatchRef& batch = queue.in_flight.front();
    const auto state = device_->Query(*batch->event);
    if (!state) return Unexpected(state.error());
    if (*state == EventState::kPending) return {};
    for (Held& held : batch->sources) {
      Uncount(queue, 1, held.bytes);
      out.push_back(std::move(held));
    }
    batch->sources.clear();
    // Nobody waits for it any more: whoever does holds a reference, and lets go under the lock.
    if (batch.use_count() == 1 && spare_events_.size() < kSpareEvents) {
      spare_events_.push_back(*std::exchange(batch->event, std::nullopt));
    }
    queue.in_flight.pop_front();
  }
  return {};
}

// Asks and releases, for one stream or for all. The sources die outside the lock.
Expected<uint64_t> ReleaseCore::Collect(std::optional<StreamId> only) {
  std::vector<Held> released;
  Expected<void> result;
  {
    MutexLock lock(mutex_);
    for (auto at = queues_.begin(); at != queues_.end();) {
      const auto next = std::next(at);
      if (!only || at->first == *only) {
        auto collected = CollectOne(at->second, released);
        if (!collected && result) result = std::move(collected);
        if (at->second.items == 0) queues_.erase(at);
      }
      at = next;
    }
    stats_.released += released.size();
    if (!released.empty()) NotifyWaiters();
  }
  const uint64_t count = released.size();
  released.clear();
  if (!result) return ErrorOf(result);
  return count;
}

std::vector<ReleaseCore::BatchRef> ReleaseCore::InFlight(std::optional<StreamId> only,
                                                         bool* recording) {
  std::vector<BatchRef> batches;
  MutexLock lock(mutex_);
  for (const auto& [id, queue] : queues_) {
    if (only && id != *only) continue;
    batches.insert(batches.end(), queue.in_flight.begin(), queue.in_flight.end());
    if (recording != nullptr) *recording = *recording || queue.recording > 0;
  }
  return batches;
}

Expected<void> ReleaseCore::WaitForAny(std::vector<BatchRef> batches,
                                       std::chrono::nanoseconds timeout, uint64_t epoch) {
  std::vector<const Event*> events;
  for (const BatchRef& batch : batches) events.push_back(&*batch->event);
  auto waited = device_->WaitAny(events, {timeout, &wakeup_, epoch});
  MutexLock lock(mutex_);
  batches.clear();
  if (!waited) return ErrorOf(waited);
  return {};
}

Expected<void> ReleaseCore::Wait(std::chrono::nanoseconds timeout, uint64_t epoch) {
  return WaitForAny(InFlight(std::nullopt, nullptr), timeout, epoch);
}

Expected<void> ReleaseCore::Drain(std::chrono::nanoseconds timeout) {
  if (!in_own_process()) {
    return FailedPrecondition(
        "The release queue was made before this process was forked; a device does not survive a "
        "fork.");
  }
  {
    MutexLock lock(mutex_);
    ++waiters_;
  }
  const std::chrono::nanoseconds start = device_->Now();
  Expected<void> result = FlushAll(/*only_due=*/false);
  Expected<void> waited;
  while (waited) {
    const uint64_t epoch = wakeup_.Epoch();
    auto collected = Collect(std::nullopt);
    if (!collected) {
      waited = ErrorOf(collected);
      break;
    }
    bool recording = false;
    std::vector<BatchRef> batches = InFlight(std::nullopt, &recording);
    if (batches.empty() && !recording) break;
    const std::chrono::nanoseconds left = timeout - (device_->Now() - start);
    if (left <= std::chrono::nanoseconds(0)) {
      waited = Unavailable("The sources in " + std::to_string(batches.size()) +
                           " batches were not released within " + std::to_string(timeout.count()) +
                           " ns.");
    }
    if (waited) {
      waited = WaitForAny(std::move(batches), left, epoch);
    } else {
      MutexLock lock(mutex_);
      batches.clear();
    }
  }
  MutexLock lock(mutex_);
  --waiters_;
  return waited ? result : waited;
}

}  // namespace h2d::internal
