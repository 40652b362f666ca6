#include "h2d/device/fake/internal/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "h2d/device/fake/internal/address_sanitizer.h"

namespace h2d::fake_internal {
namespace {

constexpr size_t kMaxSpareOps = 16'384;
constexpr size_t kMaxSpareBytes = 4'096;  // staged bytes that a spare operation keeps

}  // namespace

void ReadPart(const CopyPart& part, size_t begin, size_t end, std::byte* staged) {
  std::byte* to = staged + part.staged + begin;
  if (part.block != nullptr) {
    CopyPoisoned(to, part.from + begin, end - begin);
  } else {
    std::memcpy(to, part.from + begin, end - begin);
  }
}

std::unique_ptr<Op> Engine::NewOp() {
  if (spare_.empty()) return std::make_unique<Op>();
  std::unique_ptr<Op> op = std::move(spare_.back());
  spare_.pop_back();
  return op;
}

void Engine::PopHead(SimStream& stream) {
  std::unique_ptr<Op> op = std::move(stream.queue.front());
  stream.queue.pop_front();
  --queued_;
  for (const MarkerRef& record : op->records) Signal(*record);
  if (spare_.size() >= kMaxSpareOps) return;
  if (op->info.kind == OpKind::kStreamWait || op->info.kind == OpKind::kRecord) {
    // These have set nothing else, and there is one for each copy that crosses streams.
    op->marker.reset();
    op->records.clear();
    op->info = {};
    spare_.push_back(std::move(op));
    return;
  }
  std::vector<std::byte> staged = std::move(op->staged);
  std::vector<CopyPart> parts = std::move(op->parts);
  std::vector<MarkerRef> records = std::move(op->records);
  *op = Op{};
  staged.clear();
  parts.clear();
  records.clear();
  if (staged.capacity() <= kMaxSpareBytes) op->staged = std::move(staged);
  op->parts = std::move(parts);
  op->records = std::move(records);
  spare_.push_back(std::move(op));
}

void Engine::Enqueue(SimStream& stream, std::unique_ptr<Op> op) {
  stream.queue.push_back(std::move(op));
  ++queued_;
  if (stream.queue.size() == 1) Settle(stream);
}

void Engine::Record(SimStream& stream, MarkerRef marker, const OperationInfo& info) {
  if (!stream.queue.empty()) {
    stream.queue.back()->records.push_back(std::move(marker));
  } else if (!stream.held) {
    marker->complete = true;  // nobody waits for it yet
  } else {
    std::unique_ptr<Op> op = NewOp();
    op->info = info;
    op->info.kind = OpKind::kRecord;
    op->marker = std::move(marker);
    Enqueue(stream, std::move(op));
  }
}

MarkerRef Engine::TailOf(SimStream& stream) {
  if (!stream.queue.empty() && !stream.queue.back()->records.empty()) {
    return stream.queue.back()->records.back();
  }
  auto marker = std::make_shared<Marker>();
  marker->stream = &stream;
  marker->complete = stream.queue.empty();
  if (!stream.queue.empty()) stream.queue.back()->records.push_back(marker);
  return marker;
}

void Engine::Signal(Marker& marker) {
  marker.complete = true;
  for (SimStream* waiter : marker.waiters) {
    waiter->waiting = false;
    unsettled_.push_back(waiter);
  }
  marker.waiters.clear();
}

void Engine::Settle(SimStream& stream) {
  unsettled_.push_back(&stream);
  if (settling_) return;  // further up the stack
  settling_ = true;
  while (!unsettled_.empty()) {
    SimStream* next = unsettled_.back();
    unsettled_.pop_back();
    SettleOne(*next);
  }
  settling_ = false;
}

void Engine::SettleOne(SimStream& stream) {
  while (!stopped_ && !stream.queue.empty() && !stream.held && !stream.scheduled &&
         !stream.waiting && !stream.running) {
    Op& op = *stream.queue.front();
    if (op.info.kind == OpKind::kStreamWait) {
      if (!op.marker->complete) {
        op.marker->waiters.push_back(&stream);
        stream.waiting = true;
        return;
      }
      PopHead(stream);
    } else if (op.info.kind == OpKind::kRecord) {
      Signal(*op.marker);
      PopHead(stream);
    } else {
      StartHead(stream, op);
    }
  }
}

void Engine::StartHead(SimStream& stream, Op& op) {
  Time end = now_ + op.latency;
  if (op.link_bytes != 0 && link_bytes_per_second_ != 0) {
    // Latencies overlap, bytes on the link do not. 1 GB/s is one byte in a nanosecond.
    const auto nanoseconds = static_cast<int64_t>(static_cast<unsigned __int128>(op.link_bytes) *
                                                  1'000'000'000U / link_bytes_per_second_);
    link_free_ = std::max(link_free_, now_) + Time(nanoseconds);
    end = link_free_ + op.latency;
  }
  if (op.on_processors) {
    processors_free_ = std::max(processors_free_, now_) + op.latency;
    end = processors_free_;
  }
  op.started = true;
  effects_.Start(op);
  stream.scheduled = true;
  stream.due = end;
  due_.push({end, sequence_++, &stream, ++stream.schedule});
}

void Engine::DropStale() {
  while (!due_.empty() &&
         (due_.top().schedule != due_.top().stream->schedule || !due_.top().stream->scheduled)) {
    due_.pop();
  }
}

bool Engine::CanStep(Time limit) {
  if (stopped_) return false;
  for (DropStale(); !due_.empty() && due_.top().stream->held; DropStale()) {
    // Nothing completes on a held stream: its release puts it back on the time line.
    due_.top().stream->overdue = true;
    due_.pop();
  }
  return !due_.empty() && due_.top().time <= limit;
}

bool Engine::Step(Time limit) {
  if (!CanStep(limit)) return false;
  const Due due = due_.top();
  due_.pop();
  now_ = std::max(now_, due.time);
  FinishHead(*due.stream);
  return true;
}

void Engine::FinishHead(SimStream& stream) {
  stream.scheduled = false;
  stream.overdue = false;
  stream.running = true;
  ++running_;
  effects_.Complete(*stream.queue.front(), stream);
  --running_;
  stream.running = false;
  PopHead(stream);
  Settle(stream);
}

void Engine::AdvanceTo(Time time) {
  while (Step(time)) {
  }
  now_ = std::max(now_, time);
}

void Engine::Release(SimStream& stream) {
  stream.held = stream.stuck = false;
  if (stream.overdue) {
    stream.overdue = false;
    due_.push({std::max(now_, stream.due), sequence_++, &stream, ++stream.schedule});
  }
  Settle(stream);
}

bool Engine::CompleteHead(SimStream& stream) {
  if (stopped_ || stream.queue.empty() || stream.running) return false;
  Op& op = *stream.queue.front();
  if (op.info.kind == OpKind::kStreamWait) {
    if (!op.marker->complete) return false;
    PopHead(stream);
    Settle(stream);
    return true;
  }
  if (op.info.kind == OpKind::kRecord) {
    Signal(*op.marker);
    PopHead(stream);
    Settle(stream);
    return true;
  }
  if (!op.started) {
    op.started = true;
    effects_.Start(op);
  }
  FinishHead(stream);
  return true;
}

}  // namespace h2d::fake_internal
