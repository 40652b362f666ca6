#include "h2d/stager/internal/release_core.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "h2d/device/checked_size.h"

namespace h2d::internal {

ReleaseQueueOptions ReleaseCore::Unlimited(uint64_t flush_items) noexcept {
  constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  ReleaseQueueOptions options;
  options.flush_items = flush_items;
  options.flush_bytes = options.max_items = options.max_bytes = kNoLimit;
  return options;
}

ReleaseCore::ReleaseCore(std::shared_ptr<Device> device, const ReleaseQueueOptions& options,
                         OnFailedRecord on_failed_record)
    : device_(std::move(device)), options_(options), on_failed_record_(on_failed_record) {
  spare_events_.reserve(kSpareEvents);
}

// Nobody else has a reference any more; in a forked child a lock might be held for ever.
ReleaseCore::~ReleaseCore() {
  // Once more after an error: one that passed is no reason to leak. And again for what callbacks
  // pushed meanwhile.
  for (int failures = 0; failures < 2 && in_own_process() && HoldsSources();) {
    if (!Drain(std::chrono::nanoseconds::max())) ++failures;
  }
  for (auto& [id, queue] : queues_) {
    for (Held& held : queue.open) held.source.Leak();
    for (const BatchRef& batch : queue.in_flight) {
      for (Held& held : batch->sources) held.source.Leak();
    }
  }
}

Expected<ReleaseCore::Named> ReleaseCore::Name(const Stream& stream) const {
  if (!in_own_process()) {
    return FailedPrecondition(
        "The release queue was made before this process was forked; a device does not survive a "
        "fork.");
  }
  auto status = device_->Inspect(stream);
  if (!status) return ErrorOf(status);
  if (!status->capturing) return Named{status->id, false};
  if (stream.id() == 0) {
    return FailedPrecondition(
        "A default stream is being captured, and its identity cannot be asked for meanwhile.");
  }
  return Named{stream.id(), true};
}

// Looked for first: what a queue is made of is allocated.
ReleaseCore::StreamQueue& ReleaseCore::QueueFor(StreamId id, const Stream& stream) {
  const auto found = queues_.find(id);
  if (found != queues_.end()) [[likely]]
    return found->second;
  return queues_.emplace(id, StreamQueue{.stream = stream, .open = {}, .in_flight = {}})
      .first->second;
}

// Nobody overtakes who waits, but callbacks: those who wait may be what they hold up.
bool ReleaseCore::TryReserve(StreamId id, const Stream& stream, uint64_t bytes, uint64_t place) {
  MutexLock lock(mutex_);
  StreamQueue& queue = QueueFor(id, stream);
  const bool first = queue.waiting.empty() || queue.waiting.front() == place;
  if (!first && ReleaseOfThisThread() == nullptr) return false;
  const auto sum = CheckedSum(queue.bytes, bytes);
  const bool fits = queue.items < options_.max_items && sum && *sum <= options_.max_bytes;
  if (queue.items > 0 && !fits) return false;
  ++queue.items;
  queue.bytes += bytes;
  ++stats_.held_items;
  stats_.held_bytes += bytes;
  return true;
}

uint64_t ReleaseCore::StandInLine(StreamId id, const Stream& stream) {
  MutexLock lock(mutex_);
  ++waiters_;
  ++stats_.waits;
  StreamQueue& queue = QueueFor(id, stream);
  return queue.waiting.emplace_back(++last_number_);
}

void ReleaseCore::LeaveLine(StreamId id, uint64_t place) {
  MutexLock lock(mutex_);
  --waiters_;
  std::erase(queues_.find(id)->second.waiting, place);
  DropIfEmpty(id);
  NotifyWaiters();  // whose turn it is now
}

Unexpected ReleaseCore::AtLimit(StreamId id, ErrorCode code, const char* why) {
  MutexLock lock(mutex_);
  const auto found = queues_.find(id);
  const uint64_t items = found == queues_.end() ? 0 : found->second.items;
  const uint64_t bytes = found == queues_.end() ? 0 : found->second.bytes;
  return MakeError(code, "The release queue holds " + std::to_string(items) + " sources of " +
                             std::to_string(bytes) + " bytes for stream " + std::to_string(id) +
                             ", of max_items " + std::to_string(options_.max_items) +
                             " and max_bytes " + std::to_string(options_.max_bytes) + ", " + why +
                             ".");
}

Expected<void> ReleaseCore::Reserve(const Named& named, const Stream& stream, uint64_t bytes,
                                    const std::stop_token& cancel) {
  if (TryReserve(named.id, stream, bytes, 0)) [[likely]]
    return {};
  if (auto collected = Collect(named.id, named.id); !collected) return ErrorOf(collected);
  if (TryReserve(named.id, stream, bytes, 0)) return {};
  if (named.capturing) {
    return AtLimit(named.id, ErrorCode::kResourceExhausted,
                   "and the stream is being captured, so that none can be flushed");
  }
  const uint64_t place = StandInLine(named.id, stream);
  Expected<void> result = WaitForRoom(named.id, stream, bytes, place, cancel);
  LeaveLine(named.id, place);
  return result;
}

Expected<void> ReleaseCore::WaitForRoom(StreamId id, const Stream& stream, uint64_t bytes,
                                        uint64_t place, const std::stop_token& cancel) {
  const std::chrono::nanoseconds start = device_->Now();
  const std::stop_callback wake(cancel, [this] { wakeup_.Notify(); });
  for (;;) {
    // Read before trying: whatever is released after the try moves the epoch on.
    const uint64_t epoch = wakeup_.Epoch();
    auto flushed = FlushKnown(id, stream);
    auto collected = Collect(id, id);
    if (TryReserve(id, stream, bytes, place)) return {};
    if (!flushed) return ErrorOf(flushed);
    if (!collected) return ErrorOf(collected);
    if (cancel.stop_requested())
      return AtLimit(id, ErrorCode::kUnavailable, "and it was told to stop");
    const std::chrono::nanoseconds left = options_.wait_timeout - (device_->Now() - start);
    if (left <= std::chrono::nanoseconds(0)) {
      return AtLimit(id, ErrorCode::kUnavailable, "and none was released in time");
    }
    if (auto waited = WaitForAny(InFlight(id), left, epoch); !waited) return waited;
  }
}

void ReleaseCore::GiveBack(StreamId id, uint64_t bytes) noexcept {
  MutexLock lock(mutex_);
  Uncount(queues_.find(id)->second, 1, bytes);
  DropIfEmpty(id);
  NotifyWaiters();
}

void ReleaseCore::Open(StreamQueue& queue, HeldSource&& source, uint64_t reserved) {
  queue.open.push_back(Held{std::move(source), reserved, ++last_number_});
  queue.open_bytes += reserved;
  ++stats_.pushed;
}

void ReleaseCore::Push(HeldSource&& source, StreamId id, const Stream& stream, uint64_t reserved) {
  bool within_callback = false;
  {
    MutexLock lock(mutex_);
    StreamQueue& queue = queues_.find(id)->second;
    Open(queue, std::move(source), reserved);
    queue.due = queue.due || queue.open.size() >= options_.flush_items ||
                queue.open_bytes >= options_.flush_bytes;
    // No other thread can name a per-thread default stream to flush it later.
    if (!queue.due && stream.kind() != StreamKind::kPerThreadDefault) return;
    within_callback = ReleaseOfThisThread() != nullptr;
  }
  // A failure leaves the flush due; the push itself is done.
  static_cast<void>(Flush(stream));
  if (!within_callback) static_cast<void>(Collect(id, id));
}

// Pushed and taken at once: no other thread's flush takes the source, and fails.
Expected<void> ReleaseCore::PushAndFlush(HeldSource&& source, StreamId id, const Stream& stream,
                                         uint64_t reserved) {
  std::vector<BatchRef> replaced;
  BatchRef batch;
  {
    MutexLock lock(mutex_);
    StreamQueue& queue = queues_.find(id)->second;
    Open(queue, std::move(source), reserved);
    batch = TakeOpen(queue, replaced);
  }
  bool look = false;
  auto recorded = RecordAndPutBack(id, std::move(batch), stream, &look);
  if (look) static_cast<void>(Collect(id, id));
  return recorded;
}

void ReleaseCore::PushOpen(HeldSource&& source, StreamId id, uint64_t reserved) {
  MutexLock lock(mutex_);
  Open(queues_.find(id)->second, std::move(source), reserved);
}

// Opens the batches whose events failed to answer, to be recorded anew, unless somebody waits for
// one. Their events end with `replaced`, outside the lock.
void ReleaseCore::TakeUnasked(StreamQueue& queue, std::vector<BatchRef>& replaced) {
  for (auto at = queue.in_flight.begin(); at != queue.in_flight.end();) {
    BatchRef& batch = *at;
    if (!batch->unasked || batch.use_count() > 1) {
      ++at;
      continue;
    }
    for (Held& held : batch->sources) queue.open.push_back(std::move(held));
    batch->sources.clear();
    replaced.push_back(std::move(batch));
    at = queue.in_flight.erase(at);
  }
}

ReleaseCore::BatchRef ReleaseCore::TakeOpen(StreamQueue& queue, std::vector<BatchRef>& replaced) {
  TakeUnasked(queue, replaced);
  if (queue.open.empty()) return nullptr;
  auto batch = std::make_shared<Batch>();
  batch->sources = std::exchange(queue.open, {});
  batch->oldest = batch->sources.front().number;
  for (const Held& held : batch->sources) batch->oldest = std::min(batch->oldest, held.number);
  batch->taken = ++last_number_;
  queue.open_bytes = 0;
  queue.due = false;
  queue.recording.insert(batch->oldest);
  if (!spare_events_.empty()) {
    batch->event = std::move(spare_events_.back());
    spare_events_.pop_back();
  }
  return batch;
}

Expected<void> ReleaseCore::RecordBatch(Batch& batch, const Stream& stream) {
  if (!batch.event) {
    auto event = device_->CreateEvent();
    if (!event) return ErrorOf(event);
    batch.event = std::move(*event);
  }
  auto recorded = device_->Record(*batch.event, stream);
  // What the event stands for now is not known: it is not used again.
  if (!recorded) batch.event.reset();
  return recorded;
}

// Answers whether to look for complete batches.
bool ReleaseCore::PutBack(StreamId id, BatchRef batch, bool recorded) {
  std::vector<Held> let_go;  // ends after the lock
  MutexLock lock(mutex_);
  StreamQueue& queue = queues_.find(id)->second;
  bool look = false;
  queue.recording.erase(queue.recording.find(batch->oldest));
  if (recorded) {
    ++stats_.flushes;
    const auto younger =
        std::find_if(queue.in_flight.rbegin(), queue.in_flight.rend(),
                     [&](const BatchRef& other) { return other->taken < batch->taken; });
    queue.in_flight.insert(younger.base(), std::move(batch));
    look = queue.in_flight.size() >= queue.look_at;
  } else {
    ++stats_.flushes_failed;
    queue.due = on_failed_record_ != OnFailedRecord::kLetGo;
    for (Held& held : batch->sources) {
      if (queue.due) {
        queue.open_bytes += held.bytes;
        queue.open.push_back(std::move(held));
      } else {
        Uncount(queue, 1, held.bytes);
        let_go.push_back(std::move(held));
      }
    }
    DropIfEmpty(id);
  }
  NotifyWaiters();
  return look;
}

Expected<void> ReleaseCore::RecordAndPutBack(StreamId id, BatchRef batch, const Stream& stream,
                                             bool* look) {
  auto recorded = RecordBatch(*batch, stream);
  const bool worth_a_look = PutBack(id, std::move(batch), recorded.has_value());
  if (look != nullptr) *look = worth_a_look;
  return recorded;
}

Expected<FlushOutcome> ReleaseCore::FlushKnown(StreamId id, const Stream& stream) {
  std::vector<BatchRef> replaced;
  BatchRef batch;
  {
    MutexLock lock(mutex_);
    const auto found = queues_.find(id);
    if (found != queues_.end()) batch = TakeOpen(found->second, replaced);
  }
  if (batch == nullptr) return FlushOutcome::kNothing;
  if (auto recorded = RecordAndPutBack(id, std::move(batch), stream); !recorded)
    return ErrorOf(recorded);
  return FlushOutcome::kFlushed;
}

Expected<FlushOutcome> ReleaseCore::Flush(const Stream& stream) {
  auto named = Name(stream);
  if (!named) return ErrorOf(named);
  if (!named->capturing) return FlushKnown(named->id, stream);
  MutexLock lock(mutex_);
  const auto found = queues_.find(named->id);
  if (found == queues_.end() || found->second.open.empty()) return FlushOutcome::kNothing;
  found->second.due = true;
  return FlushOutcome::kPutOff;
}

Expected<bool> ReleaseCore::ShouldFlush(const Stream& stream) {
  auto named = Name(stream);
  if (!named) return ErrorOf(named);
  MutexLock lock(mutex_);
  const auto found = queues_.find(named->id);
  return found != queues_.end() && found->second.due && !found->second.open.empty();
}

Expected<uint64_t> ReleaseCore::Poll(std::optional<StreamId> concern) {
  if (!in_own_process()) {
    return FailedPrecondition(
        "The release queue was made before this process was forked; a device does not survive a "
        "fork.");
  }
  return Collect(std::nullopt, concern);
}

ReleaseQueueStats ReleaseCore::Stats() const noexcept {
  if (!in_own_process()) return {};
  MutexLock lock(mutex_);
  return stats_;
}

void ReleaseCore::Uncount(StreamQueue& queue, uint64_t items, uint64_t bytes) {
  queue.items -= items;
  queue.bytes -= bytes;
  stats_.held_items -= items;
  stats_.held_bytes -= bytes;
}

void ReleaseCore::DropIfEmpty(StreamId id) {
  const auto found = queues_.find(id);
  if (found->second.items == 0 && found->second.waiting.empty()) queues_.erase(found);
}

void ReleaseCore::NotifyWaiters() {
  if (waiters_ > 0) wakeup_.Notify();
}

}  // namespace h2d::internal
