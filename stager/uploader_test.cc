// What an uploader does with each kind of source, good and bad, with real files and mappings, on
// the simulated device.
#include "h2d/stager/uploader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/device/host/host_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d {
namespace {

using Bytes = std::vector<std::byte>;
using std::chrono::milliseconds;

constexpr uint64_t kChunk = 4096;

Bytes Pattern(uint64_t bytes, uint32_t seed = 1) {
  Bytes result(bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    result[i] = static_cast<std::byte>((i * 2654435761U + i / 251 + seed) >> 3);
  return result;
}

// A file with content, gone with the test.
class TempFile {
 public:
  explicit TempFile(const Bytes& content) {
    const char* const folder = std::getenv("TEST_TMPDIR");
    path_ = std::string(folder == nullptr ? "/tmp" : folder) + "/upload_XXXXXX";
    descriptor_ = mkstemp(path_.data());
    EXPECT_EQ(write(descriptor_, content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
  }
  ~TempFile() {
    if (descriptor_ >= 0) close(descriptor_);
    unlink(path_.c_str());
  }
  int descriptor() const { return descriptor_; }
  void Truncate(uint64_t bytes) { EXPECT_EQ(ftruncate(descriptor_, static_cast<off_t>(bytes)), 0); }
  int CloseNow() {
    close(descriptor_);
    return std::exchange(descriptor_, -1);
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

class UploaderTest : public ::testing::Test {
 protected:
  // Little chunks, so that a little source has many; the calling thread reads.
  static UploaderOptions Small() {
    UploaderOptions options;
    options.threads = 0;
    options.chunk_bytes = kChunk;
    options.min_chunk_bytes = kChunk;
    options.max_chunks = 4;
    options.max_pinned_bytes = 1 << 20;
    options.ring_bytes = 256;
    return options;
  }
  void Make(const UploaderOptions& options) {
    auto uploader = Uploader::Create(faulty_, options);
    ASSERT_TRUE(uploader) << uploader.error().ToString();
    uploader_ = std::move(*uploader);
  }
  void SetUp() override { Make(Small()); }
  void TearDown() override {
    static_cast<void>(fake_->Release(stream_));
    uploader_.reset();
    fake_->RunUntilIdle();
    for (const Hazard& hazard : fake_->hazards()) ADD_FAILURE() << hazard.ToString();
  }

  Destination NewDestination(uint64_t bytes) {
    return {.ptr = fake_->AllocateDevice(bytes).value(), .count = bytes, .element_bytes = 1};
  }
  Bytes Read(const Destination& from) {
    Bytes bytes(from.count);
    EXPECT_TRUE(fake_->ReadBack(from.ptr, bytes, stream_));
    return bytes;
  }
  void ExpectUploads(UploadSource source, const Bytes& expected) {
    const Destination to = NewDestination(expected.size());
    const auto ticket = uploader_->Upload(to, std::move(source), stream_);
    ASSERT_TRUE(ticket) << ticket.error().ToString();
    EXPECT_TRUE(Read(to) == expected);
  }
  // The error names each of `parts`; whether it says "incomplete" is as told.
  void ExpectFails(const Expected<UploadTicket>& ticket, ErrorCode code, bool incomplete,
                   const std::vector<std::string>& parts) {
    ASSERT_FALSE(ticket);
    const std::string& message = ticket.error().message;
    EXPECT_EQ(ticket.error().code, code) << message;
    EXPECT_EQ(message.back(), '.') << message;
    EXPECT_EQ(message.find("the destination is incomplete") != std::string::npos, incomplete)
        << message;
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
    }
  }
  // All chunks are back: as many uploads as there are chunks work afterwards.
  void ExpectChunksAreBack() {
    ExpectUploads(UploadSource::Memory(pattern_), pattern_);
    ASSERT_TRUE(fake_->SynchronizeStream(stream_));
    const uint64_t sent = uploader_->stats().chunks.copies_issued;
    ASSERT_TRUE(fake_->Hold(stream_));  // none comes back while it is held
    const Destination to = NewDestination(2 * kChunk);
    ASSERT_TRUE(uploader_->Upload(to, UploadSource::Memory(std::span(pattern_).first(2 * kChunk)),
                                  stream_));
    EXPECT_EQ(uploader_->stats().chunks.copies_issued, sent + 2);
    ASSERT_TRUE(fake_->Release(stream_));
  }

  const std::shared_ptr<FakeDevice> fake_ = FakeDevice::Create();
  const std::shared_ptr<FaultyDevice> faulty_ = FaultyDevice::Create(fake_);
  const Stream stream_ = fake_->NewStream("uploads");
  const Bytes pattern_ = Pattern(10 * kChunk + 37);
  std::unique_ptr<Uploader> uploader_;
};

TEST_F(UploaderTest, EachKindOfSourceArrivesWhole) {
  for (const uint32_t threads : {0U, 3U}) {
    UploaderOptions options = Small();
    options.threads = threads;
    Make(options);
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{255}, uint64_t{257}, kChunk, kChunk + 1,
                                 7 * kChunk - 1, uint64_t{100'003}}) {
      SCOPED_TRACE(bytes);
      const Bytes content = Pattern(bytes + 13, threads);
      const Bytes expected(content.begin() + 13, content.end());
      ExpectUploads(UploadSource::Memory(expected), expected);
      const TempFile file(content);
      ExpectUploads(UploadSource::File(file.descriptor(), 13, bytes), expected);
      void* const mapped =
          mmap(nullptr, content.size(), PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
      ASSERT_NE(mapped, MAP_FAILED);
      const std::span mapping(static_cast<const std::byte*>(mapped), content.size());
      ExpectUploads(UploadSource::Mapping(mapping.subspan(13)), expected);
      munmap(mapped, content.size());
      auto pinned = fake_->AllocatePinned(bytes).value();
      fake_->OnHostAccess(pinned.bytes(), HostAccess::kWrite);
      std::copy(expected.begin(), expected.end(), pinned.bytes().begin());
      ExpectUploads(UploadSource::Memory(pinned.bytes()), expected);
    }
  }
}

TEST_F(UploaderTest, MemoryMayBeOverwrittenAsSoonAsTheCallReturned) {
  for (const uint64_t bytes : {uint64_t{200}, 2 * kChunk}) {
    const Destination to = NewDestination(bytes);
    Bytes source = Pattern(bytes);
    ASSERT_TRUE(fake_->Hold(stream_));
    const auto ticket = uploader_->Upload(to, UploadSource::Memory(source), stream_);
    ASSERT_TRUE(ticket);
    EXPECT_TRUE(uploader_->SourceReusable(*ticket).value_or(false));
    source.assign(source.size(), std::byte{0});
    ASSERT_TRUE(fake_->Release(stream_));
    EXPECT_TRUE(Read(to) == Pattern(bytes));
  }
}

// Few chunks cost the calling thread little; many let copies run beside the reading.
TEST_F(UploaderTest, ASourceIsDividedIntoFourChunksAtLeastAndSmallOnesNoFurther) {
  Make(UploaderOptions());
  constexpr uint64_t kKiB = 1024;
  const Bytes large = Pattern(24 * 1024 * kKiB);
  const Destination to = NewDestination(large.size());
  for (const auto& [kib, copies] :
       {std::pair<uint64_t, uint64_t>(256, 1),  // through one slot
        std::pair<uint64_t, uint64_t>(512, 2), std::pair<uint64_t, uint64_t>(1024, 4),
        std::pair<uint64_t, uint64_t>(4096, 4), std::pair<uint64_t, uint64_t>(8192, 8),
        std::pair<uint64_t, uint64_t>(24 * 1024, 16)}) {
    const uint64_t before = fake_->counters().copies;
    ASSERT_TRUE(
        uploader_->Upload(to, UploadSource::Memory(std::span(large).first(kib * kKiB)), stream_));
    EXPECT_EQ(fake_->counters().copies - before, copies) << kib << " KiB";
  }
  EXPECT_TRUE(Read(to) == large);
}

// held: [copy of all of it ... ]    one copy, no chunk; the owner lives until it was read
TEST_F(UploaderTest, PinnedMemoryGoesAsItIsAndIsKeptUntilItWasRead) {
  for (const uint64_t bytes : {3 * kChunk, uint64_t{12} << 20}) {
    PinnedBuffer pinned = fake_->AllocatePinned(bytes).value();
    const Destination to = NewDestination(bytes);
    const FakeCounters before = fake_->counters();
    ASSERT_TRUE(fake_->Hold(stream_));
    const auto memory = pinned.bytes();
    const auto ticket = uploader_->Upload(
        to, UploadSource::Memory(memory).KeptAliveBy(HeldSource(std::move(pinned))), stream_);
    ASSERT_TRUE(ticket) << ticket.error().ToString();
    EXPECT_EQ(fake_->counters().copies, before.copies + 1);
    EXPECT_EQ(uploader_->stats().sources.flushes, 1U);
    EXPECT_FALSE(uploader_->SourceReusable(*ticket).value_or(true));
    ASSERT_TRUE(fake_->Release(stream_));
    ASSERT_TRUE(fake_->SynchronizeStream(stream_));
    EXPECT_TRUE(uploader_->SourceReusable(*ticket).value_or(false));
    EXPECT_EQ(fake_->counters().pinned_releases, before.pinned_releases + 1);
    Make(Small());
  }
}

TEST_F(UploaderTest, APolicyMaySendLargeAndSmallPageableMemoryDirectly) {
  UploaderOptions options = Small();
  options.policy.pageable_through_pinned_below_bytes = 2 * kChunk;
  options.policy.pageable_through_pinned_from_bytes = 101;
  for (const uint64_t bytes : {uint64_t{100}, 2 * kChunk}) {
    SCOPED_TRACE(bytes);
    Make(options);
    const Bytes source = Pattern(bytes);
    const Destination to = NewDestination(bytes);
    ASSERT_TRUE(fake_->Hold(stream_));
    const auto ticket = uploader_->Upload(to, UploadSource::Memory(source), stream_);
    ASSERT_TRUE(ticket);
    EXPECT_EQ(uploader_->stats().chunks.copies_issued, 0U);
    EXPECT_FALSE(uploader_->SourceReusable(*ticket).value_or(true));
    ASSERT_TRUE(fake_->Release(stream_));
    EXPECT_TRUE(Read(to) == source);
    EXPECT_TRUE(uploader_->SourceReusable(*ticket).value_or(false));
  }
}

TEST_F(UploaderTest, NobodyAsksAboutDeclaredPinnedMemoryOrWhereTheKindDoesNotMatter) {
  UploaderOptions options = Small();
  options.policy.pageable_through_pinned_from_bytes = 101;
  Make(options);
  const PinnedBuffer pinned = fake_->AllocatePinned(3 * kChunk).value();
  fake_->OnHostAccess(pinned.bytes(), HostAccess::kWrite);
  std::ranges::copy(std::span(pattern_).first(3 * kChunk), pinned.bytes().begin());
  const auto upload = [&](UploadSource source) {
    const uint64_t before = faulty_->CallCount(CallKind::kKindOf);
    const auto expected = std::span(pattern_).first(source.bytes());
    ExpectUploads(std::move(source), Bytes(expected.begin(), expected.end()));
    return faulty_->CallCount(CallKind::kKindOf) - before;
  };
  EXPECT_EQ(upload(UploadSource::Pinned(pinned.bytes())), 0U);
  EXPECT_EQ(uploader_->stats().chunks.copies_issued, 0U);
  EXPECT_EQ(upload(UploadSource::Memory(std::span(pattern_).first(100))), 0U);
  EXPECT_GE(upload(UploadSource::Memory(pinned.bytes())), 1U);
  EXPECT_GE(upload(UploadSource::Memory(std::span(pattern_).first(101))), 1U);
}

TEST_F(UploaderTest, PageableMemoryBetweenThePolicysBordersPassesThroughPinned) {
  UploaderOptions options = Small();
  options.policy.pageable_through_pinned_below_bytes = 2 * kChunk;
  options.policy.pageable_through_pinned_from_bytes = 101;
  for (const uint64_t bytes : {uint64_t{101}, 2 * kChunk - 1}) {
    SCOPED_TRACE(bytes);
    Make(options);
    const Bytes source = Pattern(bytes);
    ASSERT_TRUE(fake_->Hold(stream_));
    const auto ticket =
        uploader_->Upload(NewDestination(bytes), UploadSource::Memory(source), stream_);
    ASSERT_TRUE(ticket);
    EXPECT_GE(uploader_->stats().chunks.copies_issued, 1U);
    EXPECT_TRUE(uploader_->SourceReusable(*ticket).value_or(false));
    ASSERT_TRUE(fake_->Release(stream_));
  }
}

// A stream that stands still gives no chunk back: what is pinned stays bounded, and the wait ends.
TEST_F(UploaderTest, AFullSetOfChunksWaitsAndFailsInTime) {
  UploaderOptions options = Small();
  options.wait_timeout = milliseconds(5);
  options.max_pinned_bytes = 4 * kChunk;
  Make(options);
  ASSERT_TRUE(fake_->Hold(stream_));
  ExpectFails(
      uploader_->Upload(NewDestination(pattern_.size()), UploadSource::Memory(pattern_), stream_),
      ErrorCode::kUnavailable, true, {"5000000 ns", "8192 of 40997 bytes were enqueued"});
  EXPECT_LE(fake_->counters().pinned_bytes, 4 * kChunk);
  ASSERT_TRUE(fake_->Release(stream_));
  ExpectChunksAreBack();
}

TEST_F(UploaderTest, AStuckStreamLeavesChunksToOthers) {
  ASSERT_TRUE(fake_->Hold(stream_));
  const Destination to = NewDestination(2 * kChunk);
  const auto part = std::span(pattern_).first(2 * kChunk);
  ASSERT_TRUE(uploader_->Upload(to, UploadSource::Memory(part), stream_));
  const Stream other = fake_->NewStream("other");
  const Destination there = NewDestination(pattern_.size());
  const auto ticket = uploader_->Upload(there, UploadSource::Memory(pattern_), other);
  ASSERT_TRUE(ticket) << ticket.error().ToString();
  ASSERT_TRUE(fake_->SynchronizeStream(other));
  ASSERT_TRUE(fake_->Release(stream_));
  EXPECT_TRUE(Read(there) == pattern_);
}

// A small source takes no chunk but a slot of their own ring. Who finds none there takes a chunk,
// and those are divided.
TEST_F(UploaderTest, SmallSourcesOfAStuckStreamLeaveChunksToOthers) {
  UploaderOptions options = Small();
  options.wait_timeout = milliseconds(5);
  for (const uint64_t spare : {uint64_t{0}, 4 * kChunk}) {  // without any memory beside the chunks
    options.max_pinned_bytes = 4 * kChunk + spare;
    Make(options);
    ASSERT_TRUE(fake_->Hold(stream_));
    const auto small = std::span(pattern_).first(100);
    const Destination to = NewDestination(100);
    int taken = 0;
    while (taken < 200 && uploader_->Upload(to, UploadSource::Memory(small), stream_)) ++taken;
    EXPECT_GE(taken, 1);
    EXPECT_LT(taken, 64 + 4) << "the slots, and a part of the chunks";
    EXPECT_LE(fake_->counters().pinned_bytes, options.max_pinned_bytes);
    const Stream other = fake_->NewStream("other");
    for (const uint64_t bytes : {uint64_t{100}, 3 * kChunk}) {
      const auto ticket = uploader_->Upload(
          NewDestination(bytes), UploadSource::Memory(std::span(pattern_).first(bytes)), other);
      EXPECT_TRUE(ticket) << ticket.error().ToString();
    }
    ASSERT_TRUE(fake_->Release(stream_));
  }
}

// Slots of large small sources, too: all of the memory for them may be in slots whose records
// failed, and the next source on their stream makes the record.
TEST_F(UploaderTest, SmallSourcesOfAnySizeReviveSlotsWhoseRecordsFailed) {
  constexpr uint64_t kBytes = uint64_t{64} << 10;
  UploaderOptions options = Small();
  options.chunk_bytes = options.min_chunk_bytes = options.ring_bytes = kBytes;
  options.max_chunks = 2;
  options.max_pinned_bytes = 4 * kBytes;
  for (const uint64_t bytes : {kBytes, uint64_t{100}}) {
    SCOPED_TRACE(bytes);
    Make(options);
    const Bytes source = Pattern(bytes);
    const Destination to = NewDestination(bytes);
    faulty_->Inject({.kind = CallKind::kRecord,
                     .call = faulty_->CallCount(CallKind::kRecord) + 1,
                     .span = FaultSpan::kForEver});
    for (int i = 0; i < 2; ++i)
      EXPECT_FALSE(uploader_->Upload(to, UploadSource::Memory(source), stream_));
    EXPECT_EQ(uploader_->stats().chunks.slots_quarantined, 2U);
    EXPECT_EQ(uploader_->stats().chunks.errors, 2U);
    faulty_->ClearFaults();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(uploader_->Upload(to, UploadSource::Memory(source), stream_));
      ASSERT_TRUE(fake_->SynchronizeStream(stream_));
    }
    EXPECT_EQ(uploader_->stats().chunks.slots_quarantined, 0U);
    EXPECT_TRUE(Read(to) == source);
  }
}

// What is divided is what there is memory for.
TEST_F(UploaderTest, AStuckStreamLeavesMemoryToOthersWhereTheChunksDoNotAllFit) {
  UploaderOptions options = Small();
  options.wait_timeout = milliseconds(5);
  options.max_chunks = 32;
  options.max_pinned_bytes = 4 * kChunk;
  Make(options);
  ASSERT_TRUE(fake_->Hold(stream_));
  static_cast<void>(
      uploader_->Upload(NewDestination(pattern_.size()), UploadSource::Memory(pattern_), stream_));
  const Stream other = fake_->NewStream("other");
  const auto ticket =
      uploader_->Upload(NewDestination(pattern_.size()), UploadSource::Memory(pattern_), other);
  EXPECT_TRUE(ticket) << ticket.error().ToString();
}

// stream: [busy ... copy] destroyed; its handle is the next stream's
TEST_F(UploaderTest, AStreamMayBeDestroyedOnceItsUploadHasReturned) {
  UploaderOptions options = Small();
  options.policy.pageable_through_pinned_below_bytes = 3 * kChunk;
  for (const uint64_t bytes : {uint64_t{100}, 2 * kChunk, 3 * kChunk}) {
    for (const bool pinned : {false, true}) {
      SCOPED_TRACE(bytes);
      Make(options);
      const Stream stream = fake_->NewStream("short-lived");
      KernelSpec busy;
      busy.name = "busy";
      busy.duration = milliseconds(5);
      ASSERT_TRUE(fake_->Launch(stream, busy));
      const auto owner = std::make_shared<PinnedBuffer>(fake_->AllocatePinned(bytes).value());
      const Bytes pageable(bytes);
      const std::span<const std::byte> memory =
          pinned ? std::span<const std::byte>(owner->bytes()) : std::span(pageable);
      const auto ticket = uploader_->Upload(NewDestination(bytes),
                                            UploadSource::Memory(memory).KeptAliveBy(HeldSource(
                                                std::shared_ptr<PinnedBuffer>(owner), bytes)),
                                            stream);
      ASSERT_TRUE(ticket);
      ASSERT_TRUE(fake_->DestroyStream(stream));
      static_cast<void>(fake_->NewStream("next"));
      fake_->RunUntilIdle();
      EXPECT_TRUE(uploader_->SourceReusable(*ticket).value_or(false));
      uploader_.reset();
      EXPECT_EQ(owner.use_count(), 1);
    }
  }
}

TEST_F(UploaderTest, AStreamWhoseRecordFailedIsNoConcernOfOtherUploads) {
  const auto one = std::span(pattern_).first(300);
  const Stream other = fake_->NewStream("other");
  const Destination to = NewDestination(pattern_.size());
  const Destination there = NewDestination(300);
  const auto expect_others_work = [&] {
    for (int i = 0; i < 3; ++i) {
      const auto ticket = uploader_->Upload(to, UploadSource::Memory(pattern_), other);
      EXPECT_TRUE(ticket) << ticket.error().ToString();
    }
  };
  const auto fail_second_record = [&] {
    faulty_->Inject({.kind = CallKind::kRecord, .call = faulty_->CallCount(CallKind::kRecord) + 2});
  };
  const Stream gone = fake_->NewStream("gone");
  fail_second_record();
  ASSERT_TRUE(uploader_->Upload(there, UploadSource::Memory(one), gone));
  ASSERT_TRUE(fake_->SynchronizeStream(gone));
  ASSERT_TRUE(fake_->DestroyStream(gone));
  expect_others_work();

  fail_second_record();
  ASSERT_TRUE(uploader_->Upload(there, UploadSource::Memory(one), stream_));
  bool capturing = false;
  faulty_->SetHook(CallKind::kRecord, [&](uint64_t) {
    if (!std::exchange(capturing, true)) {
      ASSERT_TRUE(fake_->BeginCapture(stream_, CaptureMode::kRelaxed));
    }
  });
  expect_others_work();
  const auto graph = fake_->EndCapture(stream_);
  ASSERT_TRUE(graph) << graph.error().ToString();
  EXPECT_EQ(graph->operations(), 0U);
  faulty_->SetHook(CallKind::kRecord, {});
  ASSERT_TRUE(fake_->SynchronizeStream(other));
}

// One event stands for several of its chunks; the last ones had none yet when it was told to stop.
TEST_F(UploaderTest, AnUploadThatStoppedKeepsNoPartForAStreamThatIsGone) {
  UploaderOptions options = Small();
  options.max_chunks = 32;
  options.wait_timeout = milliseconds(5);
  Make(options);
  const Stream gone = fake_->NewStream("gone");
  std::stop_source stop;
  UploadControl control;
  control.cancel = stop.get_token();
  faulty_->SetHook(CallKind::kCopyAsync, [&](uint64_t) { stop.request_stop(); });
  ExpectFails(uploader_->Upload(NewDestination(pattern_.size()), UploadSource::Memory(pattern_),
                                gone, control),
              ErrorCode::kUnavailable, true, {"4096 of 40997"});
  faulty_->SetHook(CallKind::kCopyAsync, {});
  ASSERT_TRUE(fake_->SynchronizeStream(gone));
  ASSERT_TRUE(fake_->DestroyStream(gone));
  ASSERT_TRUE(fake_->Hold(stream_));  // all of it has to fit its part, which is a half again
  const auto ticket =
      uploader_->Upload(NewDestination(pattern_.size()), UploadSource::Memory(pattern_), stream_);
  EXPECT_TRUE(ticket) << ticket.error().ToString();
  ASSERT_TRUE(fake_->Release(stream_));
}

TEST_F(UploaderTest, AFailedDirectUploadSaysHowLongItsSourceIsRead) {
  PinnedBuffer pinned = fake_->AllocatePinned(kChunk).value();
  for (const CallKind kind : {CallKind::kCopyAsync, CallKind::kRecord}) {
    faulty_->Inject(
        {.kind = kind, .call = faulty_->CallCount(kind) + 1, .timing = FaultTiming::kAfterCall});
    ASSERT_TRUE(fake_->Hold(stream_));
    bool ended = false;
    ExpectFails(uploader_->Upload(NewDestination(kChunk),
                                  UploadSource::Memory(pinned.bytes())
                                      .KeptAliveBy(HeldSource([&ended] { ended = true; }, kChunk)),
                                  stream_),
                ErrorCode::kDevice, true,
                {"copy of 4096 bytes may have been enqueued",
                 "may read the source until the stream was synchronised"});
    EXPECT_FALSE(ended);
    ASSERT_TRUE(fake_->Release(stream_));
    ASSERT_TRUE(fake_->SynchronizeStream(stream_));
    uploader_.reset();
    EXPECT_TRUE(ended);
    Make(Small());
  }
}

TEST_F(UploaderTest, TicketsThatNameNoUploadOfThisUploaderAreRefused) {
  PinnedBuffer pinned = fake_->AllocatePinned(kChunk).value();
  ASSERT_TRUE(fake_->Hold(stream_));
  const Destination to = NewDestination(kChunk);
  auto ticket = uploader_->Upload(to, UploadSource::Memory(pinned.bytes()), stream_);
  ASSERT_TRUE(ticket);
  const auto expect_refused = [](Uploader& uploader, const UploadTicket& asked) {
    const auto answer = uploader.SourceReusable(asked);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
  };
  const auto another = Uploader::Create(fake_, Small()).value();
  expect_refused(*another, *ticket);
  const UploadTicket moved = std::move(*ticket);
  expect_refused(*uploader_, *ticket);
  EXPECT_FALSE(uploader_->SourceReusable(moved).value_or(true));
  ASSERT_TRUE(fake_->Release(stream_));
  ASSERT_TRUE(fake_->SynchronizeStream(stream_));
  EXPECT_TRUE(uploader_->SourceReusable(moved).value_or(false));
}

TEST_F(UploaderTest, NothingIsTouchedWhereNoPinnedMemoryCanBeHad) {
  UploaderOptions options = Small();
  options.min_chunk_bytes = 256;  // all that the ring has when it is made
  Make(options);
  faulty_->Inject(OutOfMemory(faulty_->CallCount(CallKind::kAllocatePinned) + 1));
  ExpectFails(
      uploader_->Upload(NewDestination(pattern_.size()), UploadSource::Memory(pattern_), stream_),
      ErrorCode::kResourceExhausted, false, {});
  EXPECT_EQ(fake_->counters().copies, 0U);
}

TEST_F(UploaderTest, ASmallUploadThatWasRefusedDoesNotCallTheDestinationIncomplete) {
  faulty_->Inject({.kind = CallKind::kInspect, .call = faulty_->CallCount(CallKind::kInspect) + 1});
  ExpectFails(uploader_->Upload(NewDestination(100),
                                UploadSource::Memory(std::span(pattern_).first(100)), stream_),
              ErrorCode::kDevice, false, {});
  EXPECT_EQ(fake_->counters().copies, 0U);
}

// As many chunks as fit: the outer upload holds none that the nested one waits for.
TEST_F(UploaderTest, ProgressMayStartAnUploadOfLargerChunks) {
  UploaderOptions options = Small();
  options.wait_timeout = milliseconds(5);
  options.chunk_bytes = options.max_pinned_bytes = 8 * kChunk;
  options.max_chunks = 8;
  Make(options);
  const Bytes large = Pattern(64 * kChunk);
  const Destination to = NewDestination(large.size());
  int nested = 0;
  UploadControl control;
  control.progress = [&](const UploadProgress&) {
    if (nested++ > 0) return;
    const auto ticket = uploader_->Upload(to, UploadSource::Memory(large), fake_->NewStream());
    EXPECT_TRUE(ticket) << ticket.error().ToString();
  };
  const auto ticket = uploader_->Upload(NewDestination(4 * kChunk),
                                        UploadSource::Memory(std::span(pattern_).first(4 * kChunk)),
                                        stream_, control);
  EXPECT_TRUE(ticket) << ticket.error().ToString();
  EXPECT_EQ(nested, 4);
}

// outer:  takes all of its stream's part, enqueues one chunk, is in the callback ........
// nested:                                                       waits for that chunk, goes on
TEST_F(UploaderTest, ProgressMayStartAnUploadOnItsOwnStream) {
  for (const uint32_t max_chunks : {1U, 16U, 32U}) {
    UploaderOptions options = Small();
    options.wait_timeout = milliseconds(5);
    options.max_chunks = max_chunks;
    options.max_pinned_bytes = uint64_t{4} << 20;
    Make(options);
    const Bytes source = Pattern(64 * kChunk);
    const Destination outer = NewDestination(source.size());
    const Destination nested = NewDestination(source.size());
    int depth = 0;
    UploadControl control;
    control.progress = [&](const UploadProgress&) {
      if (depth++ > 2) return;
      const auto ticket = uploader_->Upload(nested, UploadSource::Memory(source), stream_, control);
      EXPECT_TRUE(ticket) << max_chunks << " chunks: " << ticket.error().ToString();
    };
    const auto ticket = uploader_->Upload(outer, UploadSource::Memory(source), stream_, control);
    EXPECT_TRUE(ticket) << max_chunks << " chunks: " << ticket.error().ToString();
    EXPECT_TRUE(Read(outer) == source);
    EXPECT_TRUE(Read(nested) == source);
  }
}

// The streams of the outer ones use all chunks, and only their callbacks' callers could record.
TEST_F(UploaderTest, ProgressMayStartUploadsOnOtherStreamsUntilAllChunksAreInUse) {
  UploaderOptions options = Small();
  options.wait_timeout = milliseconds(5);
  options.max_chunks = 64;
  Make(options);
  const Bytes source = Pattern(40 * kChunk);
  int depth = 0;
  UploadControl control;
  control.progress = [&](const UploadProgress&) {
    if (depth++ > 3) return;
    const auto ticket = uploader_->Upload(
        NewDestination(source.size()), UploadSource::Memory(source), fake_->NewStream(), control);
    EXPECT_TRUE(ticket) << ticket.error().ToString();
  };
  const auto ticket = uploader_->Upload(NewDestination(source.size()), UploadSource::Memory(source),
                                        stream_, control);
  EXPECT_TRUE(ticket) << ticket.error().ToString();
}

TEST(UploaderOnHost, ProgressMayStartAnUploadOnItsOwnStream) {
  const auto device = HostDevice::Create();
  const Stream stream = device->NewStream();
  UploaderOptions options;
  options.threads = 0;
  options.chunk_bytes = options.min_chunk_bytes = kChunk;
  options.ring_bytes = 256;
  options.wait_timeout = milliseconds(100);
  const auto uploader = Uploader::Create(device, options).value();
  const Bytes source = Pattern(80 * kChunk);
  Bytes outer(source.size());
  Bytes nested(source.size());
  UploadControl control;
  control.progress = [&, begun = false](const UploadProgress&) mutable {
    if (std::exchange(begun, true)) return;
    const auto ticket = uploader->Upload(Destination::Of(nested.data(), nested.size()),
                                         UploadSource::Memory(source), stream);
    EXPECT_TRUE(ticket) << ticket.error().ToString();
  };
  const auto ticket = uploader->Upload(Destination::Of(outer.data(), outer.size()),
                                       UploadSource::Memory(source), stream, control);
  EXPECT_TRUE(ticket) << ticket.error().ToString();
  EXPECT_TRUE(outer == source);
  EXPECT_TRUE(nested == source);
}

// Scenario 19: here the file ends while it is read, in the third chunk.
TEST_F(UploaderTest, AFileThatEndsEarlyIsAnErrorWithTheOffset) {
  UploaderOptions options = Small();
  options.max_chunks = 2;  // one is read at a time
  for (const uint32_t threads : {0U, 2U}) {
    options.threads = threads;
    Make(options);
    TempFile file(pattern_);
    UploadControl control;
    control.progress = [&](const UploadProgress& progress) {
      if (progress.bytes_enqueued == 2 * kChunk) file.Truncate(2 * kChunk + 100);
    };
    ExpectFails(uploader_->Upload(NewDestination(pattern_.size()),
                                  UploadSource::File(file.descriptor(), 0, pattern_.size()),
                                  stream_, control),
                ErrorCode::kFailedPrecondition, true,
                {"ended at offset 8292", "32705 bytes before", "8192 of 40997"});
    fake_->RunUntilIdle();
    options.max_chunks = 4;
    ExpectUploads(UploadSource::Memory(pattern_), pattern_);
    options.max_chunks = 2;
  }
}

TEST_F(UploaderTest, BadFilesAreRefusedBeforeAnythingIsEnqueued) {
  const Destination to = NewDestination(1 << 16);
  const auto upload = [&](int descriptor, uint64_t offset, uint64_t bytes) {
    return uploader_->Upload(to, UploadSource::File(descriptor, offset, bytes), stream_);
  };
  TempFile file(pattern_);
  ExpectFails(upload(file.descriptor(), 0, pattern_.size() + 1), ErrorCode::kInvalidArgument, false,
              {"40998 bytes at offset 0", "beyond the file's 40997 bytes"});
  ExpectFails(upload(file.descriptor(), 40'000, 1000), ErrorCode::kInvalidArgument, false,
              {"1000 bytes at offset 40000", "beyond the file's 40997 bytes"});
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  ExpectFails(upload(file.descriptor(), kMost, 2), ErrorCode::kInvalidArgument, false,
              {"2 bytes at offset 18446744073709551615", "largest file offset"});
  ExpectFails(upload(file.descriptor(), uint64_t{1} << 63, 2), ErrorCode::kInvalidArgument, false,
              {"2 bytes at offset 9223372036854775808", "largest file offset"});
  const int folder = open("/", O_RDONLY | O_DIRECTORY);
  ExpectFails(upload(folder, 7, 10), ErrorCode::kInvalidArgument, false,
              {"10 bytes at offset 7", "is a directory"});
  close(folder);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ExpectFails(upload(ends[0], 5, 10), ErrorCode::kFailedPrecondition, false,
              {"offset 5", "errno 29"});
  close(ends[0]);
  close(ends[1]);
  // The kernel answers EIO where nothing is mapped: an I/O error of a real file.
  const int memory = open("/proc/self/mem", O_RDONLY);
  ExpectFails(upload(memory, 4096, 10'000), ErrorCode::kFailedPrecondition, false,
              {"offset 4096", "errno 5"});
  close(memory);
  ExpectFails(upload(file.CloseNow(), 3, 10), ErrorCode::kInvalidArgument, false,
              {"10 bytes at offset 3", "errno 9"});
  EXPECT_EQ(fake_->counters().copies, 0U);
  ExpectChunksAreBack();
}

TEST_F(UploaderTest, BadDestinationsAndSourcesAreRefused) {
  const auto upload = [&](const Destination& to) {
    return uploader_->Upload(to, UploadSource::Memory(pattern_), stream_);
  };
  const DevicePtr ptr = NewDestination(1 << 16).ptr;
  ExpectFails(upload({ptr, pattern_.size() - 1, 1}), ErrorCode::kInvalidArgument, false,
              {"40997 bytes", "40996 elements of 1 bytes"});
  ExpectFails(upload({DevicePtr(), 1 << 16, 1}), ErrorCode::kInvalidArgument, false, {"null"});
  ExpectFails(upload({ptr, 1 << 16, 4}), ErrorCode::kInvalidArgument, false, {"of 4 bytes"});
  ExpectFails(upload({ptr, uint64_t{1} << 62, 8}), ErrorCode::kInvalidArgument, false,
              {"overflows"});
  const auto device_memory = std::span(static_cast<const std::byte*>(ptr.pointer()), 16);
  ExpectFails(uploader_->Upload({ptr + 64, 16, 1}, UploadSource::Memory(device_memory), stream_),
              ErrorCode::kInvalidArgument, false, {});
  ExpectFails(uploader_->Upload({ptr, 1 << 16, 1}, UploadSource::Memory(pattern_),
                                FakeDevice::Create()->NewStream()),
              ErrorCode::kInvalidArgument, false, {});
  EXPECT_EQ(fake_->counters().copies, 0U);
}

TEST_F(UploaderTest, NoBytesAreASuccessWithoutADeviceCall) {
  const uint64_t inspections = fake_->counters().inspections;
  const auto ticket = uploader_->Upload({}, UploadSource::File(-1, 0, 0), stream_);
  ASSERT_TRUE(ticket);
  EXPECT_TRUE(uploader_->SourceReusable(*ticket).value_or(false));
  EXPECT_EQ(fake_->counters().inspections, inspections);
}

TEST_F(UploaderTest, ACapturingStreamIsRefusedBeforeAnythingIsRecorded) {
  PinnedBuffer pinned = fake_->AllocatePinned(kChunk).value();
  ASSERT_TRUE(fake_->BeginCapture(stream_));
  const Destination to = NewDestination(pattern_.size());
  for (const std::span<const std::byte> source :
       {std::span<const std::byte>(pattern_), std::span<const std::byte>(pattern_).first(8),
        std::span<const std::byte>(pinned.bytes())}) {
    ExpectFails(uploader_->Upload(to, UploadSource::Memory(source), stream_),
                ErrorCode::kFailedPrecondition, false, {"captured"});
  }
  const auto graph = fake_->EndCapture(stream_);
  ASSERT_TRUE(graph) << graph.error().ToString();
  EXPECT_EQ(graph->operations(), 0U);
}

TEST_F(UploaderTest, ProgressIsToldAndAStopIsObeyedBetweenChunks) {
  std::stop_source stop;
  std::vector<uint64_t> told;
  UploadControl control;
  control.cancel = stop.get_token();
  control.progress = [&](const UploadProgress& progress) {
    told.push_back(progress.bytes_enqueued);
    EXPECT_EQ(progress.bytes_total, pattern_.size());
    if (told.size() == 3) stop.request_stop();
  };
  const Destination to = NewDestination(pattern_.size());
  ExpectFails(uploader_->Upload(to, UploadSource::Memory(pattern_), stream_, control),
              ErrorCode::kUnavailable, true, {"stop", "12288 of 40997"});
  EXPECT_EQ(told, (std::vector<uint64_t>{kChunk, 2 * kChunk, 3 * kChunk}));
  Bytes expected = pattern_;
  std::fill(expected.begin() + 3 * kChunk, expected.end(), std::byte{0});
  EXPECT_TRUE(Read(to) == expected);
  ExpectFails(uploader_->Upload(to, UploadSource::Memory(pattern_), stream_, control),
              ErrorCode::kUnavailable, false, {"before anything was enqueued"});
  ExpectChunksAreBack();
}

TEST_F(UploaderTest, AStopEndsAWaitForTheLimitOfSourcesThatTheDeviceReads) {
  UploaderOptions options = Small();
  options.release.flush_items = options.release.max_items = 1;
  Make(options);
  PinnedBuffer pinned = fake_->AllocatePinned(kChunk).value();
  const Destination to = NewDestination(kChunk);
  ASSERT_TRUE(fake_->Hold(stream_));
  ASSERT_TRUE(uploader_->Upload(to, UploadSource::Memory(pinned.bytes()), stream_));
  std::stop_source stop;
  UploadControl control;
  control.cancel = stop.get_token();
  faulty_->SetHook(CallKind::kWaitAny, [&](uint64_t) { stop.request_stop(); });
  ExpectFails(uploader_->Upload(to, UploadSource::Memory(pinned.bytes()), stream_, control),
              ErrorCode::kUnavailable, false, {"told to stop", "1 sources of 4096 bytes"});
  faulty_->SetHook(CallKind::kWaitAny, {});
  EXPECT_LT(fake_->Now(), std::chrono::seconds(1));
  ASSERT_TRUE(fake_->Release(stream_));
  ASSERT_TRUE(uploader_->Upload(to, UploadSource::Memory(pinned.bytes()), stream_));
  ASSERT_TRUE(fake_->SynchronizeStream(stream_));
}

// Of two chunks of memory the held stream has one in flight, and one whose records failed: its
// share came back, its memory has not.
TEST_F(UploaderTest, AStopEndsAWaitForMemoryThatAChunkIsToBeReadInto) {
  UploaderOptions options = Small();
  options.max_chunks = 2;
  options.max_pinned_bytes = 2 * kChunk;
  Make(options);
  const Destination to = NewDestination(kChunk);
  ASSERT_TRUE(fake_->Hold(stream_));
  for (const uint64_t next : {1U, 2U}) {
    faulty_->Inject(
        {.kind = CallKind::kRecord, .call = faulty_->CallCount(CallKind::kRecord) + next});
  }
  const auto chunk = [&] { return UploadSource::Memory(std::span(pattern_).first(kChunk)); };
  ExpectFails(uploader_->Upload(to, chunk(), stream_), ErrorCode::kDevice, true, {});
  ASSERT_TRUE(uploader_->Upload(to, chunk(), stream_));
  std::stop_source stop;
  UploadControl control;
  control.cancel = stop.get_token();
  faulty_->SetHook(CallKind::kWaitAny, [&](uint64_t) { stop.request_stop(); });
  const Stream other = fake_->NewStream("other");
  ExpectFails(uploader_->Upload(NewDestination(kChunk), chunk(), other, control),
              ErrorCode::kUnavailable, false, {"told to stop"});
  faulty_->SetHook(CallKind::kWaitAny, {});
  EXPECT_LT(fake_->Now(), std::chrono::seconds(1));
  ASSERT_TRUE(fake_->Release(stream_));
}

TEST_F(UploaderTest, AFailedCopySaysThatTheDestinationIsIncomplete) {
  for (const FaultTiming timing : {FaultTiming::kBeforeCall, FaultTiming::kAfterCall}) {
    faulty_->Inject({.kind = CallKind::kCopyAsync,
                     .call = faulty_->CallCount(CallKind::kCopyAsync) + 3,
                     .timing = timing});
    ExpectFails(
        uploader_->Upload(NewDestination(pattern_.size()), UploadSource::Memory(pattern_), stream_),
        ErrorCode::kDevice, true, {"8192 of 40997"});
    fake_->RunUntilIdle();
    ExpectChunksAreBack();
  }
}

TEST_F(UploaderTest, MirrorsForgetWhatAnUploadOverwrites) {
  const auto stager = PinnedStager::Create(fake_).value();
  PinnedBuffer pinned = fake_->AllocatePinned(64).value();
  fake_->OnHostAccess(pinned.bytes(), HostAccess::kWrite);
  std::fill(pinned.bytes().begin(), pinned.bytes().end(), std::byte{7});
  const Destination to = NewDestination(3 * kChunk);
  const Bytes image = Pattern(64, 9);
  auto mirror = stager->NewMirror({to.ptr + kChunk, 64, 1}).value();
  const std::span<const std::byte> pageable = std::span(pattern_).first(3 * kChunk);
  for (const std::span<const std::byte> source :
       {pageable, std::span<const std::byte>(pinned.bytes())}) {
    ASSERT_TRUE(stager->Copy(mirror, image, stream_));
    const Destination over{source.size() > 64 ? to.ptr : to.ptr + kChunk, source.size(), 1};
    ASSERT_TRUE(uploader_->Upload(over, UploadSource::Memory(source), stream_));
    const auto copied = stager->Copy(mirror, image, stream_);
    ASSERT_TRUE(copied);
    EXPECT_EQ(copied->kind, CopyOutcome::Kind::kIssued);
  }
  ASSERT_TRUE(fake_->SynchronizeStream(stream_));
}

TEST_F(UploaderTest, OwnersEndWhenTheSourceIsNoLongerNeededAlsoWhenItWasRefused) {
  const auto owner = std::make_shared<Bytes>(pattern_);
  const auto source = [&] {
    return UploadSource::Memory(*owner).KeptAliveBy(
        HeldSource(std::shared_ptr<Bytes>(owner), owner->size()));
  };
  ASSERT_TRUE(uploader_->Upload(NewDestination(pattern_.size()), source(), stream_));
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_FALSE(uploader_->Upload(Destination(), source(), stream_));
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(UploaderTest, TheEndWaitsForItsOwnCopiesAndForNothingElse) {
  const Stream foreign = fake_->NewStream("foreign");
  ASSERT_TRUE(fake_->Hold(foreign));
  KernelSpec busy;
  busy.name = "busy";
  busy.duration = milliseconds(5);
  ASSERT_TRUE(fake_->Launch(stream_, busy));
  PinnedBuffer pinned = fake_->AllocatePinned(kChunk).value();
  const auto memory = pinned.bytes();
  ASSERT_TRUE(uploader_->Upload(NewDestination(2 * kChunk),
                                UploadSource::Memory(std::span(pattern_).first(2 * kChunk)),
                                stream_));
  ASSERT_TRUE(uploader_->Upload(
      NewDestination(kChunk),
      UploadSource::Memory(memory).KeptAliveBy(HeldSource(std::move(pinned))), stream_));
  uploader_.reset();
  EXPECT_GE(fake_->Now(), milliseconds(5));
  EXPECT_EQ(fake_->counters().events_created, fake_->counters().events_destroyed);
}

// Each way that a source may take, begun by the owner of one that the destructor waits for.
TEST_F(UploaderTest, OwnersMayUploadWhileTheUploaderEnds) {
  const TempFile file(pattern_);
  PinnedBuffer pinned = fake_->AllocatePinned(kChunk).value();
  fake_->OnHostAccess(pinned.bytes(), HostAccess::kWrite);
  std::copy_n(pattern_.begin(), kChunk, pinned.bytes().begin());
  UploadSource sources[] = {UploadSource::Memory(std::span(pattern_).first(100)),
                            UploadSource::Memory(pattern_),
                            UploadSource::File(file.descriptor(), 0, pattern_.size()),
                            UploadSource::Memory(pinned.bytes())};
  for (UploadSource& source : sources) {
    Make(Small());
    Uploader& uploader = *uploader_;
    const Destination to = NewDestination(pattern_.size());
    const uint64_t bytes = source.bytes();
    int ended = 0;
    auto upload = [&] {
      ++ended;
      const auto ticket = uploader.Upload(to, std::move(source), stream_);
      ASSERT_TRUE(ticket) << ticket.error().ToString();
      EXPECT_TRUE(uploader.SourceReusable(*ticket));
      EXPECT_GE(uploader.stats().sources.pushed, 1U);
    };
    ASSERT_TRUE(fake_->Hold(stream_));
    ASSERT_TRUE(uploader.Upload(
        NewDestination(kChunk),
        UploadSource::Memory(pinned.bytes()).KeptAliveBy(HeldSource(std::move(upload), kChunk)),
        stream_));
    ASSERT_TRUE(fake_->Release(stream_));
    uploader_.reset();
    EXPECT_EQ(ended, 1);
    Bytes arrived = Read(to);
    arrived.resize(bytes);
    EXPECT_TRUE(std::equal(arrived.begin(), arrived.end(), pattern_.begin()));
  }
}

TEST(UploaderOnHost, OwnersMayUploadWhileTheUploaderEnds) {
  const auto device = HostDevice::Create();
  const Stream stream = device->NewStream();
  const PinnedBuffer pinned = device->AllocatePinned(kChunk).value();
  const Bytes source = Pattern(uint64_t{4} << 20);
  Bytes to(source.size());
  auto uploader = Uploader::Create(device).value();
  ASSERT_TRUE(uploader->Upload(Destination::Of(to.data(), kChunk),
                               UploadSource::Memory(pinned.bytes())
                                   .KeptAliveBy(HeldSource(
                                       [&, own = uploader.get()] {
                                         EXPECT_TRUE(
                                             own->Upload(Destination::Of(to.data(), to.size()),
                                                         UploadSource::Memory(source), stream));
                                       },
                                       kChunk)),
                               stream));
  uploader.reset();
  EXPECT_TRUE(to == source);
}

TEST_F(UploaderTest, OptionsOutOfRangeAreNamedWithTheirValue) {
  const auto bad = [&](auto change, const std::string& text) {
    UploaderOptions options = Small();
    change(options);
    const auto uploader = Uploader::Create(fake_, options);
    ASSERT_FALSE(uploader);
    EXPECT_NE(uploader.error().message.find(text), std::string::npos) << uploader.error().message;
  };
  bad([](UploaderOptions& o) { o.threads = 257; }, "threads, 257");
  bad([](UploaderOptions& o) { o.max_chunks = 0; }, "max_chunks, 0");
  bad([](UploaderOptions& o) { o.max_chunks = 513; }, "max_chunks, 513");
  bad([](UploaderOptions& o) { o.min_chunk_bytes = 0; }, "min_chunk_bytes, 0");
  bad([](UploaderOptions& o) { o.min_chunk_bytes = kChunk + 1; }, "min_chunk_bytes, 4097");
  bad([](UploaderOptions& o) { o.max_pinned_bytes = 4095; }, "chunk_bytes, 4096");
  bad([](UploaderOptions& o) { o.chunk_bytes = o.max_pinned_bytes = 5000; }, "chunk_bytes, 5000");
  bad([](UploaderOptions& o) { o.ring_bytes = 4097; }, "ring_bytes, 4097");
  bad([](UploaderOptions& o) { o.piece_bytes = 0; }, "piece_bytes, 0");
  bad([](UploaderOptions& o) { o.awake_for = milliseconds(-2); }, "awake_for, -2000000");
  bad([](UploaderOptions& o) { o.wait_timeout = milliseconds(-1); }, "wait_timeout, -1000000");
  bad([](UploaderOptions& o) { o.release.flush_items = 0; }, "flush_items");
  EXPECT_FALSE(Uploader::Create(nullptr));
}

}  // namespace
}  // namespace h2d
