// Sources that are not the stager's slots: what the field tripped over with pageable memory,
// batches and pointers, and that the simulated device shows it.
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "h2d/stager/uploader.h"
#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

class Sources : public ScenarioTest {};
INSTANTIATE_TEST_SUITE_P(All, Sources, ::testing::ValuesIn(Settings()), NameOf);

// Scenario 8. An address inside an allocation is of that allocation's kind, at whatever offset; one
// that is in none is pageable, and device memory is an error, not a silent default.
TEST_P(Sources, AnInteriorAddressCountsAsItsAllocationDoes) {
  const PinnedBuffer pinned = fake().AllocatePinned(bytes()).value();
  const std::byte* start = pinned.bytes().data();
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, bytes() / 2, bytes() - 1}) {
    EXPECT_EQ(fake().KindOf({start + offset, 1}).value(), MemoryKind::kPinned) << offset;
  }
  const Values pageable = ValuesOf(1);
  EXPECT_EQ(fake().KindOf(std::as_bytes(std::span(pageable).last(1))).value(),
            MemoryKind::kPageable);
  const Destination to = NewDestination();
  for (const uint64_t offset : {uint64_t{0}, bytes() - 1}) {
    const auto* const inside = static_cast<const std::byte*>((to.ptr + offset).pointer());
    ExpectError(fake().KindOf({inside, 1}), ErrorCode::kInvalidArgument);
  }
  // A copy from an interior address is tracked like one from the start.
  const Stream stream = fake().NewStream("plan");
  ASSERT_TRUE(fake().Hold(stream));
  ASSERT_TRUE(fake().CopyAsync(to.ptr, pinned.bytes().subspan(8), stream));
  fake().OnHostAccess(pinned.bytes().last(1), HostAccess::kWrite);
  ExpectHazards(HazardKind::kWriteToSourceInFlight);
  ASSERT_TRUE(fake().Release(stream));
  ASSERT_TRUE(fake().SynchronizeStream(stream));
}

// Scenario 18. A consumer on another stream that waits for nothing may read before a pageable copy
// has arrived, even where the call returned only when the source was read.
TEST_P(Sources, AConsumerThatDoesNotWaitForAPageableCopyIsReported) {
  const Values values = ValuesOf(1, 262'144);  // 1 MiB
  const Destination to = NewDestination(values.size());
  const Stream loader = fake().NewStream("loader");
  const Stream consumer = fake().NewStream("consumer");
  ASSERT_TRUE(fake().CopyAsync(to.ptr, std::as_bytes(std::span(values)), loader));
  KernelSpec unordered;
  unordered.name = "consumer";
  unordered.reads = {{to.ptr, values.size() * sizeof(int32_t)}};
  ASSERT_TRUE(fake().Launch(consumer, unordered));
  ExpectHazards(HazardKind::kUnorderedAccess);
  Order(loader, consumer);
  ExpectRead(consumer, to, values);
  fake().RunUntilIdle();
}

// The stager takes the values during its call, so the consumer's order is all that is needed.
TEST_P(Sources, AStagedValueMayBeOverwrittenAsSoonAsTheCallReturned) {
  MakeStager();
  const Stream plan = fake().NewStream("plan");
  const Stream consumer = fake().NewStream("consumer");
  const Destination to = NewDestination();
  Values values = ValuesOf(1);
  Occupy(plan);
  ExpectIssued(stager().Copy(to, values, plan));
  values.assign(values.size(), 0);
  Order(plan, consumer);
  ExpectRead(consumer, to, ValuesOf(1));
}

// Scenario 19. A file ends while its third chunk is read: an error with the offset, every chunk is
// back, a mirror of the destination believes nothing, and nothing half-done is called done.
TEST_P(Sources, AShortReadInTheThirdChunkIsAnErrorAndLosesNoChunk) {
  const Values values = ValuesOf(1, 10'000);
  const auto bytes = std::as_bytes(std::span(values));
  UploaderOptions options;
  options.threads = slots() % 2;
  options.chunk_bytes = options.min_chunk_bytes = 4096;
  options.ring_bytes = 1024;
  options.max_chunks = 2;  // one of them for each stream: read one at a time
  options.max_pinned_bytes = 3 * 4096;
  const auto uploader = Uploader::Create(shared_fake(), options).value();
  MakeStager(StagerOptions{});
  const Destination to = NewDestination(values.size());
  H2DMirror mirror = stager().NewMirror(to).value();
  const Stream stream = fake().NewStream("loader");
  ASSERT_TRUE(stager().Copy(mirror, values, stream));
  std::FILE* const file = std::tmpfile();
  ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  ASSERT_EQ(std::fflush(file), 0);
  UploadControl control;
  control.progress = [&](const UploadProgress& progress) {
    if (progress.bytes_enqueued == 8192) {
      EXPECT_EQ(ftruncate(fileno(file), 9000), 0);
    }
  };
  const auto short_read =
      uploader->Upload(to, UploadSource::File(fileno(file), 0, bytes.size()), stream, control);
  ExpectError(short_read, ErrorCode::kFailedPrecondition);
  EXPECT_NE(short_read.error().message.find("ended at offset 9000"), std::string::npos);
  EXPECT_NE(short_read.error().message.find("the destination is incomplete"), std::string::npos);
  std::fclose(file);
  EXPECT_FALSE(mirror.Matches(values).value());
  ASSERT_TRUE(uploader->Upload(to, UploadSource::Memory(values), stream));
  ExpectRead(stream, to, values);
}

// Scenario 6. A batch with its sources in stream order may read pageable memory late: over some
// seeds both the value of the call and the one stored afterwards are seen.
TEST(PageableBatches, MayReadTheirSourcesAfterTheCallReturned) {
  std::set<int32_t> seen;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    const auto fake = MakeFake(seed);
    const DevicePtr to = fake->AllocateDevice(sizeof(int32_t)).value();
    const Stream stream = fake->NewStream();
    KernelSpec busy;
    busy.duration = std::chrono::milliseconds(20);
    ASSERT_TRUE(fake->Launch(stream, busy));
    int32_t value = 1;
    const CopyEntry entry{to, std::as_bytes(std::span(&value, 1))};
    ASSERT_TRUE(fake->CopyBatchAsync(std::span(&entry, 1), stream));
    value = 2;
    fake->RunUntilIdle();
    int32_t arrived = 0;
    ASSERT_TRUE(fake->Peek(to, std::as_writable_bytes(std::span(&arrived, 1))));
    seen.insert(arrived);
  }
  EXPECT_EQ(seen, (std::set<int32_t>{1, 2}));
}

}  // namespace
}  // namespace h2d::scenarios
