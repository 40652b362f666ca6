// Batch copies.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "h2d/device/conformance/conformance_test.h"

namespace h2d::conformance {
namespace {

class Batch : public ConformanceTest {
 protected:
  // `count` entries of 64 bytes each from pinned memory to `ptr` on, 64 bytes apart.
  std::vector<CopyEntry> Entries(DevicePtr ptr, uint64_t count) {
    const PinnedBuffer& source = NewPinned(Pattern(64 * count, 9));
    std::vector<CopyEntry> entries;
    for (uint64_t i = 0; i < count; ++i) {
      entries.push_back({ptr + 64 * i, source.bytes().subspan(64 * i, 64)});
    }
    return entries;
  }
};

using HeldBatch = Batch;

TEST_F(Batch, EveryEntryArrives) {
  const Stream stream = NewStream();
  for (const uint64_t count : {1, 16, 100}) {
    SCOPED_TRACE(count);
    const DevicePtr ptr = NewMemory(64 * count);
    Must(device().CopyBatchAsync(Entries(ptr, count), stream));
    EXPECT_TRUE(ReadBack(ptr, 64 * count, stream) == Pattern(64 * count, 9));
  }
}

TEST_F(HeldBatch, ABatchKeepsItsPlaceInTheStream) {
  const Stream stream = NewHeldStream();
  const DevicePtr ptr = NewMemory(128);
  Must(device().CopyAsync(ptr, NewPinned(Pattern(128, 1)).bytes(), stream));
  Must(device().CopyBatchAsync(Entries(ptr, 2), stream));
  Must(device().CopyAsync(ptr, NewPinned(Pattern(32, 2)).bytes(), stream));
  Must(harness().Release(stream));
  std::vector<std::byte> expected = Pattern(128, 9);
  std::ranges::copy(Pattern(32, 2), expected.begin());
  EXPECT_TRUE(ReadBack(ptr, 128, stream) == expected);
}

TEST_F(Batch, AnEmptyBatchAndAnEmptyEntryAreRefusedAsAWhole) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(128);
  EXPECT_EQ(CodeOf(device().CopyBatchAsync({}, stream)), ErrorCode::kInvalidArgument);
  std::vector<CopyEntry> entries = Entries(ptr, 2);
  entries[1].source = {};
  EXPECT_EQ(CodeOf(device().CopyBatchAsync(entries, stream)), ErrorCode::kInvalidArgument);
  entries = Entries(ptr, 2);
  entries[1].destination = DevicePtr();
  EXPECT_EQ(CodeOf(device().CopyBatchAsync(entries, stream)), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(ReadBack(ptr, 128, stream) == std::vector<std::byte>(128));
}

TEST_F(Batch, TheLegacyStreamTakesNoBatch) {
  EXPECT_EQ(CodeOf(device().CopyBatchAsync(Entries(NewMemory(64), 1), harness().LegacyStream())),
            ErrorCode::kInvalidArgument);
}

TEST_F(Batch, ThePerThreadStreamTakesABatch) {
  const Stream stream = harness().PerThreadStream();
  const DevicePtr ptr = NewMemory(128);
  Must(device().CopyBatchAsync(Entries(ptr, 2), stream));
  EXPECT_TRUE(ReadBack(ptr, 128, stream) == Pattern(128, 9));
}

}  // namespace
}  // namespace h2d::conformance
