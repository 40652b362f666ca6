#include "h2d/device/conformance/answers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "h2d/device/device.h"

namespace h2d::conformance {
namespace {

// Takes a copy engine long enough that what follows at once is issued before it is done.
constexpr uint64_t kBusyBytes = 8 << 20;

// A stream with a large copy on it, and an event that stands for that copy.
struct BusyStream {
  Stream stream;
  PinnedBuffer source;
  Event busy;
};

Expected<BusyStream> MakeBusyStream(Harness& harness) {
  Device& device = *harness.device();
  Expected<Stream> stream = harness.NewStream(StreamFlavor::kNonBlocking);
  if (!stream) return ErrorOf(stream);
  Expected<PinnedBuffer> source = device.AllocatePinned(kBusyBytes);
  if (!source) return ErrorOf(source);
  Expected<DevicePtr> ptr = harness.AllocateDevice(kBusyBytes);
  if (!ptr) return ErrorOf(ptr);
  Expected<Event> busy = device.CreateEvent();
  if (!busy) return ErrorOf(busy);
  if (Expected<void> ok = device.CopyAsync(*ptr, source->bytes(), *stream); !ok) return ErrorOf(ok);
  if (Expected<void> ok = device.Record(*busy, *stream); !ok) return ErrorOf(ok);
  return BusyStream{*stream, *std::move(source), *std::move(busy)};
}

// Waits until the stream is idle, so that its source may go.
Expected<void> Finish(Harness& harness, const BusyStream& busy) {
  return harness.Synchronize(busy.stream);
}

// Copies `source` behind busy work, overwrites it as soon as the call has returned, and tells what
// arrived; `waited`: whether the call returned only when the work ahead of it was done.
struct Arrival {
  bool waited = false;
  std::vector<std::byte> bytes;
};

Expected<Arrival> OverwriteAfterCall(Harness& harness, std::span<std::byte> source,
                                     bool is_pinned) {
  Device& device = *harness.device();
  Expected<DevicePtr> ptr = harness.AllocateDevice(source.size());
  if (!ptr) return ErrorOf(ptr);
  Expected<BusyStream> busy = MakeBusyStream(harness);
  if (!busy) return ErrorOf(busy);
  if (is_pinned) device.OnHostAccess(source, HostAccess::kWrite);
  std::ranges::fill(source, std::byte{1});
  Expected<void> copied = device.CopyAsync(*ptr, source, busy->stream);
  Expected<EventState> ahead = device.Query(busy->busy);
  if (is_pinned) device.OnHostAccess(source, HostAccess::kWrite);
  std::ranges::fill(source, std::byte{2});
  Expected<std::vector<std::byte>> bytes = harness.ReadBack(*ptr, source.size(), busy->stream);
  if (Expected<void> ok = Finish(harness, *busy); !ok) return ErrorOf(ok);
  if (!copied) return ErrorOf(copied);
  if (!ahead) return ErrorOf(ahead);
  if (!bytes) return ErrorOf(bytes);
  return Arrival{*ahead == EventState::kComplete, *std::move(bytes)};
}

std::string WhatArrived(const std::vector<std::byte>& bytes) {
  const auto old_bytes = std::ranges::count(bytes, std::byte{1});
  if (old_bytes == std::ssize(bytes)) return "the bytes at the call";
  return old_bytes == 0 ? "the bytes written after the call" : "some of both";
}

Expected<std::string> AskPinnedSource(Harness& harness) {
  Expected<PinnedBuffer> source = harness.device()->AllocatePinned(40'000);
  if (!source) return ErrorOf(source);
  Expected<Arrival> arrival = OverwriteAfterCall(harness, source->bytes(), /*is_pinned=*/true);
  if (!arrival) return ErrorOf(arrival);
  return WhatArrived(arrival->bytes);
}

Expected<std::string> AskPageableSource(Harness& harness, uint64_t bytes) {
  std::vector<std::byte> source(bytes);
  Expected<Arrival> arrival = OverwriteAfterCall(harness, source, /*is_pinned=*/false);
  if (!arrival) return ErrorOf(arrival);
  return WhatArrived(arrival->bytes) +
         (arrival->waited ? ", and the call waited" : ", and the call did not wait");
}

Expected<std::string> AskEnqueue(Harness& harness) {
  Device& device = *harness.device();
  Expected<DevicePtr> ptr = harness.AllocateDevice(64);
  if (!ptr) return ErrorOf(ptr);
  Expected<PinnedBuffer> source = device.AllocatePinned(64);
  if (!source) return ErrorOf(source);
  Expected<BusyStream> busy = MakeBusyStream(harness);
  if (!busy) return ErrorOf(busy);
  Expected<void> copied = device.CopyAsync(*ptr, source->bytes(), busy->stream);
  Expected<EventState> ahead = device.Query(busy->busy);
  if (Expected<void> ok = Finish(harness, *busy); !ok) return ErrorOf(ok);
  if (!copied) return ErrorOf(copied);
  if (!ahead) return ErrorOf(ahead);
  return std::string(*ahead == EventState::kComplete ? "the call waited for its stream"
                                                     : "the call returned before");
}

Expected<std::string> AskOrderOfStreams(Harness& harness) {
  Device& device = *harness.device();
  Expected<BusyStream> first = MakeBusyStream(harness);
  if (!first) return ErrorOf(first);
  Expected<BusyStream> second = MakeBusyStream(harness);
  if (!second) return ErrorOf(second);
  const std::array<const Event*, 2> events = {&first->busy, &second->busy};
  Expected<std::optional<size_t>> found =
      device.WaitAny(events, WaitBounds{.timeout = std::chrono::seconds(20)});
  for (const BusyStream* busy : {&*first, &*second}) {
    if (Expected<void> ok = Finish(harness, *busy); !ok) return ErrorOf(ok);
  }
  if (!found) return ErrorOf(found);
  if (!found->has_value()) return Unavailable("Neither stream came to its end.");
  return std::string(**found == 0 ? "the stream used first" : "the stream used second");
}

Expected<std::string> AskFirstLook(Harness& harness) {
  Expected<BusyStream> busy = MakeBusyStream(harness);
  if (!busy) return ErrorOf(busy);
  Expected<EventState> state = harness.device()->Query(busy->busy);
  if (Expected<void> ok = Finish(harness, *busy); !ok) return ErrorOf(ok);
  if (!state) return ErrorOf(state);
  return std::string(*state == EventState::kPending ? "pending" : "complete");
}

std::vector<Question> MakeQuestions() {
  const std::set<std::string> pageable = {
      "the bytes at the call, and the call did not wait",
      "the bytes at the call, and the call waited",
      "the bytes written after the call, and the call did not wait",
  };
  return {
      {"a pinned source is overwritten after the call: what arrives?",
       {"the bytes at the call", "the bytes written after the call", "some of both"},
       AskPinnedSource},
      {"a pageable source of 64 B is overwritten after the call: what arrives?", pageable,
       [](Harness& harness) { return AskPageableSource(harness, 64); }},
      {"a pageable source of 4 MiB is overwritten after the call: what arrives?", pageable,
       [](Harness& harness) { return AskPageableSource(harness, 4 << 20); }},
      {"a copy is enqueued on a busy stream: does the call wait?",
       {"the call returned before", "the call waited for its stream"},
       AskEnqueue},
      {"two streams carry equal copies: which completes first?",
       {"the stream used first", "the stream used second"},
       AskOrderOfStreams},
      {"an event behind a copy, at the first look?", {"pending", "complete"}, AskFirstLook},
  };
}

}  // namespace

const std::vector<Question>& Questions() {
  static const auto* const questions = new std::vector<Question>(MakeQuestions());
  return *questions;
}

std::map<std::string, std::set<std::string>>& AnswersSeen() {
  static auto* const seen = new std::map<std::string, std::set<std::string>>;
  return *seen;
}

}  // namespace h2d::conformance
