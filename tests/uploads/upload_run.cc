#include "h2d/tests/uploads/upload_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace h2d::testing {

SourceFile::SourceFile() : bytes_(4 * UploadRun::kMostBytes), file_(std::tmpfile()) {
  for (size_t i = 0; i < bytes_.size(); ++i)
    bytes_[i] = static_cast<std::byte>((i * 2654435761U + i / 255) >> 7);
  EXPECT_EQ(std::fwrite(bytes_.data(), 1, bytes_.size(), file_), bytes_.size());
  EXPECT_EQ(std::fflush(file_), 0);
}

UploadRun::UploadRun(const SourceFile& file, uint64_t seed, bool with_holds, bool keep_trace)
    : file_(file), random_(seed), with_holds_(with_holds) {
  FakeOptions fake_options;
  fake_options.keep_trace = keep_trace;
  if (seed != 0) fake_options.choices = std::make_shared<HashChoices>(seed);
  // An enqueue that blocks on a stream that is held would block for good, and so would every copy
  // of a confidential machine.
  if (with_holds)
    fake_options.adversaries =
        ChoiceSites::Live().Without(ChoiceSite::kEnqueueBlocks).Without(ChoiceSite::kConfidential);
  fake_ = FakeDevice::Create(fake_options);
  faulty_ = FaultyDevice::Create(fake_);
  for (uint32_t i = 0; i < kLanes; ++i) {
    lanes_.push_back(Lane{.stream = fake_->NewStream(std::string(1, static_cast<char>('a' + i)))});
    lanes_.back().to = fake_->AllocateDevice(kMostBytes).value();
  }
}

UploaderOptions UploadRun::DrawOptions() {
  UploaderOptions options;
  options.threads = Draw(2) * 2;
  options.chunk_bytes = kChunk;
  options.min_chunk_bytes = kChunk;
  // Few chunks for many uploads, or so many that one event stands for several.
  const uint64_t many = Draw(3) == 0 ? 4 : 1;
  options.max_chunks = static_cast<uint32_t>(many * (1 + Draw(6)));
  options.max_pinned_bytes = many * kChunk * (1 + Draw(8));
  options.ring_bytes = Draw(2) * 100;
  options.piece_bytes = Draw(2) == 0 ? 100 : kChunk;
  options.wake_bytes = Draw(2) == 0 ? 1 : 1 << 20;
  options.awake_for = std::chrono::microseconds(20 * Draw(2));
  options.wait_timeout = std::chrono::milliseconds(with_holds_ ? 1 : 10'000);
  options.policy.pageable_through_pinned_below_bytes = Draw(4) == 0 ? 3 * kChunk : ~uint64_t{0};
  options.policy.pageable_through_pinned_from_bytes = Draw(4) == 0 ? 80 : 0;
  return options;
}

UploaderOptions UploadRun::SmallChunks() {
  UploaderOptions options;
  options.threads = 0;
  options.chunk_bytes = kChunk;
  options.min_chunk_bytes = kChunk;
  options.max_chunks = 4;
  options.max_pinned_bytes = 6 * kChunk;
  options.ring_bytes = 100;
  options.policy.pageable_through_pinned_below_bytes = ~uint64_t{0};
  return options;
}

bool UploadRun::Create(const UploaderOptions& options) {
  auto uploader = Uploader::Create(faulty_, options);
  if (uploader) uploader_ = std::move(*uploader);
  return uploader.has_value();
}

UploadPlan UploadRun::DrawPlan() {
  UploadPlan plan{.kind = Draw(4), .at = Draw(kMostBytes), .bytes = 1 + Draw(kMostBytes)};
  if (Draw(6) == 0) plan.stop_after = 1 + Draw(4 * kChunk);
  return plan;
}

void UploadRun::Step() {
  Lane& lane = lanes_[Draw(kLanes)];
  if (with_holds_ && Draw(5) == 0) return ToggleHold(lane);
  if (Draw(6) == 0) return InjectFault();
  Carry(lane, DrawPlan());
  if (Draw(2) == 0) CheckReader(lane);
}

void UploadRun::AskForSources() {
  for (const UploadTicket& ticket : tickets_) static_cast<void>(uploader_->SourceReusable(ticket));
}

// Whatever happened, chunks are back and the next good upload works; where a record failed, once
// its own stream has been used again: by a large source, a small one, and one that is read where it
// lies, because each way has memory of its own. No policy sends these three another way.
void UploadRun::UploadEverywhere() {
  for (int round = 0; round < 2; ++round) {
    for (Lane& lane : lanes_) {
      Carry(lane, {.kind = UploadPlan::kMapping, .bytes = kMostBytes});  // in chunks
      if (round == 1 && !lane.known) Fail("chunks did not come back: " + last_error_);
      Carry(lane, {.kind = UploadPlan::kMemory, .at = 1, .bytes = 90});  // through a small slot
      Carry(lane, {.kind = UploadPlan::kPinned, .at = 2, .bytes = 3 * kChunk});
      CheckReader(lane);
    }
  }
}

std::string UploadRun::Verdict() {
  faulty_->ClearFaults();
  for (Lane& lane : lanes_) {
    if (lane.held) ToggleHold(lane);
  }
  if (uploader_ != nullptr) {
    UploadEverywhere();
    AskForSources();
    uploader_.reset();
  }
  fake_->RunUntilIdle();
  if (!fake_->SynchronizeDevice()) Fail("the device did not come to rest");
  pinned_.clear();
  const FakeCounters counters = fake_->counters();
  if (counters.pinned_bytes != counters.pinned_cached_bytes) Fail("pinned memory was kept");
  if (!fake_->hazards().empty()) Fail(fake_->hazards().front().ToString());
  if (!mismatch_->empty()) Fail(*mismatch_);
  return failure_;
}

UploadSource UploadRun::SourceOf(const UploadPlan& plan) {
  if (plan.kind == UploadPlan::kFile)
    return UploadSource::File(file_.descriptor(), plan.at, plan.bytes);
  const auto bytes = file_.bytes().subspan(plan.at, plan.bytes);
  if (plan.kind == UploadPlan::kMapping) return UploadSource::Mapping(bytes);
  if (plan.kind == UploadPlan::kMemory) return UploadSource::Memory(bytes);
  PinnedBuffer pinned = fake_->AllocatePinned(plan.bytes).value();
  const auto memory = pinned.bytes();
  fake_->OnHostAccess(memory, HostAccess::kWrite);
  std::copy(bytes.begin(), bytes.end(), memory.begin());
  UploadSource source =
      plan.bytes % 2 == 0 ? UploadSource::Pinned(memory) : UploadSource::Memory(memory);
  if (plan.at % 2 == 0) return std::move(source).KeptAliveBy(HeldSource(std::move(pinned)));
  pinned_.push_back(std::move(pinned));
  return source;
}

void UploadRun::Carry(Lane& lane, const UploadPlan& plan) {
  std::stop_source stop;
  UploadControl control;
  control.cancel = stop.get_token();
  control.progress = [&](const UploadProgress& progress) {
    if (plan.stop_after != 0 && progress.bytes_enqueued >= plan.stop_after) stop.request_stop();
  };
  const auto ticket = uploader_->Upload({.ptr = lane.to, .count = kMostBytes, .element_bytes = 1},
                                        SourceOf(plan), lane.stream, control);
  if (ticket) {
    ++totals_.done;
    tickets_.push_back(*ticket);
    if (plan.at + plan.bytes > file_.bytes().size())
      return Fail("a short read was taken for whole");
    const auto bytes = file_.bytes().subspan(plan.at, plan.bytes);
    std::copy(bytes.begin(), bytes.end(), lane.expected.begin());
    // An earlier failure left what it left beyond these bytes.
    lane.known = lane.known || plan.bytes == kMostBytes;
    return;
  }
  last_error_ = ticket.error().ToString();
  const bool incomplete = last_error_.find("is incomplete") != std::string::npos;
  if (!incomplete) ++totals_.refused;
  if (incomplete) ++totals_.incomplete;
  if (incomplete) lane.known = false;
}

// A kernel behind the upload must see what is expected.
void UploadRun::CheckReader(Lane& lane) {
  if (!lane.known) return;
  KernelSpec kernel;
  kernel.name = "reader";
  kernel.reads = {{lane.to, kMostBytes}};
  kernel.run = [mismatch = mismatch_, to = lane.to,
                expected = lane.expected](const KernelMemory& memory) {
    const auto seen = memory.Read(to, expected.size());
    const auto at = std::mismatch(seen.begin(), seen.end(), expected.begin()).first;
    if (at != seen.end())
      *mismatch = "the destination differs at byte " + std::to_string(at - seen.begin());
  };
  if (auto launched = fake_->Launch(lane.stream, std::move(kernel)); !launched)
    Fail(launched.error().ToString());
}

void UploadRun::ToggleHold(Lane& lane) {
  const auto done = lane.held ? fake_->Release(lane.stream) : fake_->Hold(lane.stream);
  if (!done) return Fail(done.error().ToString());
  lane.held = !lane.held;
}

void UploadRun::InjectFault() {
  const CallKind kind = kCallKinds[Draw(kCallKinds.size())];
  faulty_->Inject({.kind = kind,
                   .call = faulty_->CallCount(kind) + 1 + Draw(4),
                   .timing = Draw(2) == 0 ? FaultTiming::kBeforeCall : FaultTiming::kAfterCall});
}

}  // namespace h2d::testing
