// How a release queue learns what has been read, and ends it.
#include <algorithm>
#include <utility>

#include "h2d/stager/internal/release_core.h"

namespace h2d::internal {

// Moves the sources of complete batches to `out`. Asks the oldest batches up to the first that is
// pending: what a younger one answers is for the next look, unless a wait has learnt it already. An
// event that fails to answer holds back its own batch only.
Expected<void> ReleaseCore::CollectOne(StreamQueue& queue, std::vector<Held>& out) {
  Expected<void> result;
  bool pending = false;
  for (auto at = queue.in_flight.begin(); at != queue.in_flight.end();) {
    Batch& batch = **at;
    if (!batch.complete && !pending) {
      const auto state = device_->Query(*batch.event);
      batch.unasked = !state;
      if (!state && result) result = Unexpected(state.error());
      if (state) batch.complete = *state == EventState::kComplete;
      pending = state && *state == EventState::kPending;
    }
    if (!batch.complete) {
      ++at;
      continue;
    }
    for (Held& held : batch.sources) {
      Uncount(queue, 1, held.bytes);
      out.push_back(std::move(held));
    }
    batch.sources.clear();
    // Nobody waits for it any more: whoever does holds a reference, and lets go under the lock.
    if (at->use_count() == 1 && spare_events_.size() < kSpareEvents) {
      spare_events_.push_back(*std::exchange(batch.event, std::nullopt));
    }
    at = queue.in_flight.erase(at);
  }
  return result;
}

ReleaseCore::Release* ReleaseCore::ReleaseOfThisThread() {
  for (Release& release : releases_) {
    if (release.thread == std::this_thread::get_id()) return &release;
  }
  return nullptr;
}

// Asks and releases, for one stream or for all. The sources die outside the lock. Within a callback
// they die when it has returned: callbacks of callbacks take no stack.
Expected<uint64_t> ReleaseCore::Collect(std::optional<StreamId> only,
                                        std::optional<StreamId> concern) {
  std::vector<Held> complete;
  Expected<void> result;
  uint64_t count = 0;
  std::list<Release>::iterator own;
  {
    MutexLock lock(mutex_);
    for (auto at = queues_.begin(); at != queues_.end();) {
      const auto next = std::next(at);
      if (!only || at->first == *only) {
        auto collected = CollectOne(at->second, complete);
        if (!collected && result && (!concern || at->first == *concern))
          result = std::move(collected);
        if (at->second.items == 0) queues_.erase(at);
      }
      at = next;
    }
    count = complete.size();
    stats_.released += count;
    if (count > 0) {
      uint64_t oldest = complete.front().number;
      for (const Held& held : complete) oldest = std::min(oldest, held.number);
      NotifyWaiters();
      if (Release* const outer = ReleaseOfThisThread()) {
        outer->oldest = std::min(outer->oldest, oldest);
        for (Held& held : complete) outer->sources.push_back(std::move(held));
        complete.clear();
      } else {
        own = releases_.insert(releases_.end(), {std::this_thread::get_id(), oldest, {}});
      }
    }
  }
  if (!complete.empty()) EndSources(own, std::move(complete));
  if (!result) return ErrorOf(result);
  return count;
}

void ReleaseCore::EndSources(std::list<Release>::iterator own, std::vector<Held> sources) {
  for (;;) {
    sources.clear();
    MutexLock lock(mutex_);
    if (own->sources.empty()) {
      releases_.erase(own);
      return NotifyWaiters();
    }
    sources.swap(own->sources);  // of what callbacks found complete
  }
}

}  // namespace h2d::internal
