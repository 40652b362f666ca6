// How a release queue waits, for one of its events or for all.
#include <algorithm>
#include <string>
#include <utility>

#include "h2d/stager/internal/release_core.h"

namespace h2d::internal {
namespace {

// When events that failed to answer are asked again beside a wait for others.
constexpr std::chrono::milliseconds kAskAgain{1};

}  // namespace

std::vector<ReleaseCore::BatchRef> ReleaseCore::InFlight(StreamId id) {
  MutexLock lock(mutex_);
  const auto found = queues_.find(id);
  if (found == queues_.end()) return {};
  return {found->second.in_flight.begin(), found->second.in_flight.end()};
}

Expected<void> ReleaseCore::WaitForAny(std::vector<BatchRef> batches,
                                       std::chrono::nanoseconds timeout, uint64_t epoch) {
  std::vector<const Event*> events;
  for (const BatchRef& batch : batches) events.push_back(&*batch->event);
  auto waited = device_->WaitAny(events, {timeout, &wakeup_, epoch});
  MutexLock lock(mutex_);
  if (waited && *waited) batches[**waited]->complete = true;
  batches.clear();
  if (!waited) return ErrorOf(waited);
  return {};
}

// The batches in flight without those whose events failed to answer, unless there are only such.
// Answers whether some were left out.
bool ReleaseCore::AskableInFlight(std::vector<BatchRef>& out) {
  std::vector<BatchRef> unasked;
  for (const auto& [id, queue] : queues_) {
    for (const BatchRef& batch : queue.in_flight) (batch->unasked ? unasked : out).push_back(batch);
  }
  if (!out.empty()) return !unasked.empty();
  out = std::move(unasked);
  return false;
}

Expected<void> ReleaseCore::Wait(std::chrono::nanoseconds timeout, uint64_t epoch) {
  std::vector<BatchRef> batches;
  {
    MutexLock lock(mutex_);
    ++waiters_;  // first: a batch is among these, or its flush notifies
    if (AskableInFlight(batches)) timeout = std::min<std::chrono::nanoseconds>(timeout, kAskAgain);
  }
  Expected<void> waited = WaitForAny(std::move(batches), timeout, epoch);
  // Which of them failed? The others can still be waited for.
  if (!waited) static_cast<void>(Collect(std::nullopt, std::nullopt));
  MutexLock lock(mutex_);
  --waiters_;
  if (!waited && AskableInFlight(batches)) waited = {};
  batches.clear();
  return waited;
}

Expected<void> ReleaseCore::FlushNow(StreamId id, const Stream& stream) {
  auto status = device_->Inspect(stream);
  if (!status) return ErrorOf(status);
  if (status->capturing || status->id != id) {
    return FailedPrecondition("Stream " + std::to_string(id) +
                              " is being captured, or is another thread's default stream: its "
                              "sources cannot be flushed now.");
  }
  if (auto flushed = FlushKnown(id, stream); !flushed) return ErrorOf(flushed);
  return {};
}

// Flushes the streams with open sources up to `newest`, but those that failed before.
void ReleaseCore::FlushAll(uint64_t newest, Unflushed& failed) {
  std::vector<std::pair<StreamId, Stream>> streams;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, queue] : queues_) {
      const bool old = std::any_of(queue.open.begin(), queue.open.end(),
                                   [&](const Held& held) { return held.number <= newest; });
      if (old && !failed.contains(id)) streams.emplace_back(id, queue.stream);
    }
  }
  for (const auto& [id, stream] : streams) {
    if (auto flushed = FlushNow(id, stream); !flushed) failed.emplace(id, flushed.error());
  }
}

// Within a callback no callbacks are waited for: those of others might wait for this one.
ReleaseCore::Left ReleaseCore::LookFor(uint64_t newest) {
  Left left;
  MutexLock lock(mutex_);
  for (const auto& [id, queue] : queues_) {
    const bool open = std::any_of(queue.open.begin(), queue.open.end(),
                                  [&](const Held& held) { return held.number <= newest; });
    if (open) left.open.push_back(id);
    left.pending = left.pending || (!queue.recording.empty() && *queue.recording.begin() <= newest);
    for (const BatchRef& batch : queue.in_flight) {
      if (batch->oldest <= newest) left.in_flight.push_back(batch);
    }
  }
  left.pending = left.pending || !left.in_flight.empty();
  if (ReleaseOfThisThread() != nullptr) return left;
  for (const Release& release : releases_) left.pending = left.pending || release.oldest <= newest;
  return left;
}

// Sources come back to the open ones when another thread's record fails: so all is looked at anew
// until nothing is left but what this call could not flush.
Expected<void> ReleaseCore::DrainUpTo(uint64_t newest, std::chrono::nanoseconds timeout) {
  const std::chrono::nanoseconds start = device_->Now();
  Unflushed failed;
  for (;;) {
    const uint64_t epoch = wakeup_.Epoch();
    FlushAll(newest, failed);
    if (auto collected = Collect(std::nullopt, std::nullopt); !collected) return ErrorOf(collected);
    Left left = LookFor(newest);
    if (!left.pending) {
      if (left.open.empty()) return {};
      const bool all_failed = std::all_of(left.open.begin(), left.open.end(),
                                          [&](StreamId id) { return failed.contains(id); });
      if (all_failed) return Unexpected(failed.find(left.open.front())->second);
      continue;
    }
    const std::chrono::nanoseconds time_left = timeout - (device_->Now() - start);
    const size_t batches = left.in_flight.size();
    // Also without any time: whoever held a batch lets go of it under the lock.
    const auto wait = std::max(time_left, std::chrono::nanoseconds(0));
    if (auto waited = WaitForAny(std::move(left.in_flight), wait, epoch); !waited) return waited;
    if (time_left <= std::chrono::nanoseconds(0)) {
      return Unavailable("The sources in " + std::to_string(batches) +
                         " batches were not released within " + std::to_string(timeout.count()) +
                         " ns.");
    }
  }
}

Expected<void> ReleaseCore::Drain(std::chrono::nanoseconds timeout) {
  if (!in_own_process()) {
    return FailedPrecondition(
        "The release queue was made before this process was forked; a device does not survive a "
        "fork.");
  }
  uint64_t newest = 0;
  {
    MutexLock lock(mutex_);
    ++waiters_;
    newest = last_number_;
  }
  Expected<void> drained = DrainUpTo(newest, timeout);
  MutexLock lock(mutex_);
  --waiters_;
  return drained;
}

bool ReleaseCore::HoldsSources() {
  MutexLock lock(mutex_);
  for (const auto& [id, queue] : queues_) {
    if (!queue.open.empty() || !queue.in_flight.empty()) return true;
  }
  return false;
}

}  // namespace h2d::internal
