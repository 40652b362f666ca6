// How a release queue learns what has been read, and ends it.
#include <algorithm>
#include <utility>

#include "h2d/stager/internal/release_core.h"

namespace h2d::internal {

ReleaseCore::Answer ReleaseCore::Ask(Batch& batch, Expected<void>& result) {
  const auto state = device_->Query(*batch.event);
  batch.unasked = !state;
  if (!state) {
    if (result) result = Unexpected(state.error());
    return Answer::kFailed;
  }
  batch.complete = *state == EventState::kComplete;
  return batch.complete ? Answer::kComplete : Answer::kPending;
}

// How many batches, from the oldest on, are complete. The oldest is asked first, over those that
// fail to answer: when it is pending nothing else is. Then the youngest, for all may be complete,
// and half way. A wait may have learnt of a younger one already.
size_t ReleaseCore::CountComplete(StreamQueue& queue, Expected<void>& result) {
  const std::deque<BatchRef>& all = queue.in_flight;
  size_t complete = all.size();
  while (complete > 0 && !all[complete - 1]->complete) --complete;
  Answer answer = Answer::kFailed;
  size_t at = complete;
  for (; at < all.size() && answer == Answer::kFailed; ++at) answer = Ask(*all[at], result);
  if (answer != Answer::kComplete) return complete;
  complete = at;
  size_t end = all.size();
  for (size_t next = end - 1; complete < end; next = complete + (end - complete) / 2) {
    if (Ask(*all[next], result) == Answer::kComplete) {
      complete = next + 1;
    } else {
      end = next;
    }
  }
  return complete;
}

// Moves the sources of complete batches to `out`.
Expected<void> ReleaseCore::CollectOne(StreamQueue& queue, std::vector<Held>& out) {
  Expected<void> result;
  for (size_t left = CountComplete(queue, result); left > 0; --left) {
    BatchRef& oldest = queue.in_flight.front();
    for (Held& held : oldest->sources) {
      Uncount(queue, 1, held.bytes);
      out.push_back(std::move(held));
    }
    oldest->sources.clear();
    oldest->complete = true;
    // Nobody waits for it any more: whoever does holds a reference, and lets go under the lock.
    if (oldest.use_count() == 1 && !oldest->unasked && spare_events_.size() < kSpareEvents) {
      spare_events_.push_back(*std::exchange(oldest->event, std::nullopt));
    }
    queue.in_flight.pop_front();
  }
  queue.look_at = std::max(kWorthALook, 2 * queue.in_flight.size());
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
        if (at->second.items == 0 && at->second.waiting.empty()) queues_.erase(at);
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
