// Mirrors: what a skipped or trimmed copy leaves is what a full copy would have left (I3, I4).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

using Kind = CopyOutcome::Kind;

class Mirrors : public ScenarioTest {
 protected:
  void SetUp() override { MakeStager(); }

  H2DMirror NewMirror(const Destination& to) { return stager().NewMirror(to).value(); }

  // Somebody else's kernel fills `to` with `value`.
  void Overwrite(const Stream& stream, const Destination& to, int32_t value) {
    KernelSpec writer;
    writer.name = "writer";
    writer.writes = {{to.ptr, bytes()}};
    writer.run = [ptr = to.ptr, bytes = bytes(), value](const KernelMemory& memory) {
      const std::span<std::byte> out = memory.Write(ptr, bytes);
      for (size_t at = 0; at < out.size(); at += sizeof(value)) {
        std::memcpy(out.data() + at, &value, sizeof(value));
      }
    };
    ASSERT_TRUE(fake().Launch(stream, std::move(writer)));
  }

  const Stream stream_ = fake().NewStream("plan");
};
INSTANTIATE_TEST_SUITE_P(All, Mirrors, ::testing::ValuesIn(Settings()), NameOf);

// Scenario 20. A mirror cannot see a kernel that writes its destination: told so, it sends again.
TEST_P(Mirrors, ADestinationThatSomebodyElseWroteIsSentAgainAfterInvalidate) {
  const Destination to = NewDestination();
  H2DMirror mirror = NewMirror(to);
  for (int32_t i = 0; i < 3; ++i) {
    ExpectIssued(stager().Copy(mirror, ValuesOf(1), stream_));
    ExpectKind(stager().Copy(mirror, ValuesOf(1), stream_), Kind::kSkipped);
    Overwrite(stream_, to, 77);
    mirror.Invalidate();
    EXPECT_FALSE(mirror.Matches(ValuesOf(1)).value());
    ExpectIssued(stager().Copy(mirror, ValuesOf(1), stream_));
    ExpectRead(stream_, to, ValuesOf(1));
    mirror.Invalidate();
  }
}

// Scenario 20. Told what was written and where, it need not send, and orders other streams after
// that write.
TEST_P(Mirrors, ARecordedWriteOfSomebodyElseIsSkippedAndOrdered) {
  const Destination to = NewDestination();
  H2DMirror mirror = NewMirror(to);
  const Stream other = fake().NewStream("other");
  ExpectIssued(stager().Copy(mirror, ValuesOf(1), stream_));
  Overwrite(stream_, to, 77);
  ASSERT_TRUE(mirror.Record(Values(count(), 77), stream_));
  ExpectKind(stager().Copy(mirror, Values(count(), 77), other), Kind::kSkipped);
  ExpectRead(other, to, Values(count(), 77));
}

// Scenario 20. A plain copy of the library into mirrored bytes, be it one element, makes the mirror
// forget by itself.
TEST_P(Mirrors, APlainCopyIntoAMirroredRangeMakesTheMirrorForget) {
  const Destination to = NewDestination();
  H2DMirror mirror = NewMirror(to);
  ExpectIssued(stager().Copy(mirror, ValuesOf(1), stream_));
  const Destination last = Destination::Of<int32_t>(to.ptr + (bytes() - sizeof(int32_t)), 1);
  ExpectKind(stager().Copy(last, Values{-5}, stream_), Kind::kIssued);
  ExpectIssued(stager().Copy(mirror, ValuesOf(1), stream_));
  ExpectRead(stream_, to, ValuesOf(1));
}

// Scenario 20. Graphs whose input buffers alternate: a mirror for each buffer, or the second buffer
// would be believed to hold what only the first was sent.
TEST_P(Mirrors, AlternatingBuffersHaveAMirrorEach) {
  const Stream graph = fake().NewStream("graph");
  const Destination buffers[2] = {NewDestination("even"), NewDestination("odd")};
  H2DMirror mirrors[2] = {NewMirror(buffers[0]), NewMirror(buffers[1])};
  for (int32_t step = 0; step < 8; ++step) {
    const int side = step % 2;
    const Values values = ValuesOf(step / 4);
    const auto outcome = stager().Copy(mirrors[side], values, stream_);
    ExpectKind(outcome, step % 4 < 2 ? Kind::kIssued : Kind::kSkipped);
    Order(stream_, graph);
    ExpectRead(graph, buffers[side], values);
    Order(graph, stream_);
  }
}

// Scenario 21. Block tables: rows are appended to, moved, swapped and cleared at random; after each
// step the device holds what copying everything would have left, and what travelled is no more than
// the span from the first to the last row that changed. Steps hop between streams; only a reader of
// the step before is waited for, which is all that an engine knows of.
TEST_P(Mirrors, EditedBlockTablesEqualACopyOfEverything) {
  const uint64_t columns = count() / 8;
  const uint64_t rows = count() / columns;
  const Destination to = NewDestination(rows * columns, "block table");
  H2DMirror mirror = NewMirror(to);
  const std::vector<Stream> streams = {stream_, fake().NewStream("B"), fake().NewStream("C")};
  Values table(rows * columns, -1);
  Values sent;
  uint64_t drawn = 0;
  const auto draw = [&](uint64_t n) { return MixBits(GetParam().seed * 1000 + ++drawn) % n; };

  for (int step = 0; step < 40; ++step) {
    const uint64_t a = draw(rows) * columns;
    const uint64_t b = draw(rows) * columns;
    const auto row = [&](uint64_t begin) { return table.begin() + static_cast<int64_t>(begin); };
    switch (draw(5)) {
      case 0:  // a block is appended to a row
        *std::find(row(a), row(a) + static_cast<int64_t>(columns) - 1, -1) =
            static_cast<int32_t>(draw(1000));
        break;
      case 1:  // a request moves to another row
        std::copy(row(a), row(a) + static_cast<int64_t>(columns), row(b));
        break;
      case 2:  // two requests change places
        if (a != b) std::swap_ranges(row(a), row(a) + static_cast<int64_t>(columns), row(b));
        break;
      case 3:  // a request ends
        std::fill(row(a), row(a) + static_cast<int64_t>(columns), -1);
        break;
      default:  // nothing happened
        break;
    }
    const Stream& stream = streams[draw(streams.size())];
    const auto outcome = stager().Copy(mirror, table, stream);
    ASSERT_TRUE(outcome) << outcome.error().ToString();
    if (!sent.empty()) {
      const auto first = std::mismatch(table.begin(), table.end(), sent.begin()).first;
      const auto last = std::mismatch(table.rbegin(), table.rend(), sent.rbegin()).first.base();
      const int64_t changed = first == table.end() ? 0 : last - first;
      EXPECT_EQ(outcome->bytes_sent, static_cast<uint64_t>(changed) * sizeof(int32_t));
    }
    sent = table;
    if (draw(2) != 0) continue;
    ExpectRead(stream, to, table);
    for (const Stream& next : streams) {
      if (next.id() != stream.id()) Order(stream, next);
    }
  }
}

// Scenario 22. A row shrinks, and the captured graph reads the whole width: the padding covers what
// the longer row left, or a request reads another one's blocks.
TEST_P(Mirrors, AShrinkingRowIsPaddedToItsWholeWidth) {
  const Destination to = NewDestination();
  H2DMirror mirror = NewMirror(to);
  for (const uint64_t length : {count(), count() - 3, count() / 2, uint64_t{1}, uint64_t{0}}) {
    Values values = ValuesOf(1, length);
    const auto outcome = stager().Copy(mirror, values, stream_, -1);
    ASSERT_TRUE(outcome) << outcome.error().ToString();
    EXPECT_NE(outcome->kind, Kind::kSkipped);
    values.resize(count(), -1);
    ExpectRead(stream_, to, values);
    ExpectKind(stager().Copy(mirror, values, stream_), Kind::kSkipped);
  }
}

// Scenario 23. Bits are compared, not values.
TEST_P(Mirrors, NegativeZeroTravelsAndEqualNaNsDoNot) {
  const Destination bits = NewDestination();
  const Destination to = Destination::Of<float>(bits.ptr, count());
  H2DMirror mirror = NewMirror(to);
  std::vector<float> values(count(), 0.0f);
  const auto as_read = [&] {
    Values seen(count());
    std::memcpy(seen.data(), values.data(), bytes());
    return seen;
  };
  ExpectIssued(stager().Copy(mirror, values, stream_));
  values.back() = -0.0f;
  ExpectKind(stager().Copy(mirror, values, stream_), Kind::kTrimmed);
  ExpectRead(stream_, bits, as_read());
  ExpectKind(stager().Copy(mirror, values, stream_), Kind::kSkipped);

  const float nan = std::numeric_limits<float>::quiet_NaN();
  values.assign(count(), nan);
  ExpectIssued(stager().Copy(mirror, values, stream_));
  ExpectRead(stream_, bits, as_read());
  ExpectKind(stager().Copy(mirror, values, stream_), Kind::kSkipped);
  values.front() = std::bit_cast<float>(std::bit_cast<uint32_t>(nan) ^ 1u);
  ExpectKind(stager().Copy(mirror, values, stream_), Kind::kTrimmed);
  ExpectRead(stream_, bits, as_read());
}

}  // namespace
}  // namespace h2d::scenarios
