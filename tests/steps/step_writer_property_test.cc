// Random steps on the simulated device: what a step writer sends cannot be told from sending every
// write in full (I3, I4), on one stream and across streams, whatever the device does. The rows of
// the block table are appended to, moved, swapped and cleared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "h2d/tests/steps/random_run.h"

namespace h2d::testing {
namespace {

using internal::Mark;

template <class T>
Bytes BytesOf(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return Bytes(bytes.begin(), bytes.end());
}

// One slab, its writer, and an oracle that copies everything.
struct Slab {
  DevicePtr ptr;
  std::optional<StepWriter> writer;
  Bytes device;                                   // what a reader must see in the fields
  std::vector<std::pair<uint64_t, Bytes>> asked;  // since the last submit: offset, bytes
  std::vector<std::vector<int16_t>> rows;         // the values of the table's rows

  void Submitted() {
    for (const auto& [offset, bytes] : asked) {
      std::copy(bytes.begin(), bytes.end(), device.begin() + static_cast<long>(offset));
    }
    asked.clear();
  }
};

class StepRun : public RandomRun {
 public:
  explicit StepRun(uint64_t seed) : RandomRun(seed) {
    StepLayout::Builder builder;
    tokens_ = builder.Add<int32_t>("tokens", 1 + Draw(12), {.pad = -1});
    tables_ = builder.AddRows<int16_t>("tables", 1 + Draw(5), 1 + Draw(9), {.pad = int16_t{0}});
    scales_ = builder.Add<float>("scales", 1 + Draw(6));
    layout_.emplace(*std::move(builder).Build());
    for (Slab& slab : slabs_) MakeSlab(slab);
  }

  void Step() {
    Slab& slab = slabs_[Draw(2)];
    switch (Draw(12)) {
      case 0:
        return Invalidate(slab);
      case 1:
        return PlainCopy(slab);
      case 2:
        return FailSubmit(slab);
      case 3:
      case 4:
        return Submit(slab);
      case 5:
      case 6:
      case 7:
        return ChangeRows(slab);
      default:
        return SetField(slab);
    }
  }

 private:
  void MakeSlab(Slab& slab) {
    slab.ptr = *fake_->AllocateDevice(layout_->slab_bytes(), "slab");
    const StepWriterOptions options{.cover_gap_bytes = Draw(3) * 32};
    slab.writer.emplace(*stager_->NewStepWriter(*layout_, slab.ptr, options));
    slab.device.resize(layout_->slab_bytes());
    slab.rows.resize(table().rows);
    // Rows that were never written have no content to move.
    for (uint64_t row = 0; row < table().rows; ++row) SetRow(slab, row, {});
  }

  const StepLayout::FieldInfo& table() const { return layout_->fields()[1]; }

  template <class T>
  std::vector<T> Values(uint64_t most) {
    std::vector<T> values(Draw(static_cast<uint32_t>(most + 1)));
    for (T& value : values) value = static_cast<T>(Draw(3));
    return values;
  }

  void SetField(Slab& slab) {
    const StepLayout::FieldInfo& tokens = layout_->fields()[0];
    const StepLayout::FieldInfo& scales = layout_->fields()[2];
    if (Draw(2) == 0) {
      auto values = Values<int32_t>(tokens.row_elements);
      Keep(slab.writer->Set(tokens_, values));
      values.resize(tokens.row_elements, -1);
      slab.asked.emplace_back(tokens.offset, BytesOf(values));
    } else {
      const auto values = Values<float>(scales.row_elements);
      const uint64_t first = Draw(static_cast<uint32_t>(scales.row_elements - values.size() + 1));
      Keep(slab.writer->SetAt(scales_, first, values));
      slab.asked.emplace_back(scales.offset + first * sizeof(float), BytesOf(values));
    }
  }

  void SetRow(Slab& slab, uint64_t row, const std::vector<int16_t>& values) {
    Keep(slab.writer->SetRow(tables_, row, values));
    RowIs(slab, row, values);
  }

  // The oracle writes every row that changes in full.
  void RowIs(Slab& slab, uint64_t row, std::vector<int16_t> values) {
    slab.rows[row] = values;
    values.resize(table().row_elements, 0);
    slab.asked.emplace_back(table().offset + row * table().row_bytes(), BytesOf(values));
  }

  void ChangeRows(Slab& slab) {
    const uint64_t a = Draw(static_cast<uint32_t>(table().rows));
    const uint64_t b = Draw(static_cast<uint32_t>(table().rows));
    switch (Draw(6)) {
      case 0:
        SetRow(slab, a, Values<int16_t>(table().row_elements));
        break;
      case 1:
        Append(slab, a);
        break;
      case 2:
        Keep(slab.writer->ClearRow(tables_, a));
        RowIs(slab, a, {});
        break;
      case 3:
        Keep(slab.writer->CopyRow(tables_, a, b));
        if (a != b) RowIs(slab, b, slab.rows[a]);
        break;
      case 4:
        Keep(slab.writer->MoveRow(tables_, a, b));
        if (a != b) RowIs(slab, b, slab.rows[a]);
        if (a != b) RowIs(slab, a, {});
        break;
      default:
        Keep(slab.writer->SwapRows(tables_, a, b));
        if (a == b) break;
        std::swap(slab.rows[a], slab.rows[b]);
        RowIs(slab, a, slab.rows[a]);
        RowIs(slab, b, slab.rows[b]);
    }
    for (uint64_t row = 0; row < table().rows; ++row) {
      if (slab.writer->RowCount(tables_, row) != slab.rows[row].size()) Fail("a row's count");
    }
  }

  // The row is asked for as a whole: what of it is not known travels, values and padding.
  void Append(Slab& slab, uint64_t row) {
    const auto more = Values<int16_t>(table().row_elements - slab.rows[row].size());
    Keep(slab.writer->AppendToRow(tables_, row, more));
    slab.rows[row].insert(slab.rows[row].end(), more.begin(), more.end());
    std::vector<int16_t> whole = slab.rows[row];
    whole.resize(table().row_elements, 0);
    slab.asked.emplace_back(table().offset + row * table().row_bytes(), BytesOf(whole));
  }

  void Invalidate(Slab& slab) {
    if (Draw(2) == 0) return slab.writer->Invalidate();
    slab.writer->Invalidate(tables_);
    if (slab.writer->Knows(tables_)) Fail("an invalidated field is known");
  }

  void Submit(Slab& slab) {
    const Stream& stream = DrawStream();
    AfterReaders(stream);
    auto outcome = slab.writer->Submit(stream);
    if (!outcome) return Keep(Expected<void>(ErrorOf(outcome)));
    slab.Submitted();
    ReadSlab(slab, stream);
  }

  // A call fails; what was set is still to be sent.
  void FailSubmit(Slab& slab) {
    FailNext({CallKind::kCopyAsync, CallKind::kCopyBatchAsync, CallKind::kRecord});
    const Stream& stream = DrawStream();
    AfterReaders(stream);
    auto outcome = slab.writer->Submit(stream);
    faulty_->ClearFaults();
    // On the same stream: after a record that failed no other can be ordered after it.
    if (!outcome) outcome = slab.writer->Submit(stream);
    if (!outcome) return Keep(Expected<void>(ErrorOf(outcome)));
    slab.Submitted();
    ReadSlab(slab, stream);
  }

  // Another path of the library overwrites the first field. The order between a plain copy and the
  // writer's is the caller's: after all, before all.
  void PlainCopy(Slab& slab) {
    const StepLayout::FieldInfo& field = layout_->fields()[0];
    const std::vector<int32_t> values(field.row_elements, 77);
    const Stream& stream = DrawStream();
    AfterReaders(stream);
    AfterAll(stream);
    auto copied = stager_->Copy(Destination::Of<int32_t>(slab.ptr + field.offset, values.size()),
                                values, stream);
    if (!copied) return Keep(Expected<void>(ErrorOf(copied)));
    std::memcpy(slab.device.data() + field.offset, values.data(), field.bytes());
    BeforeAll(stream);
  }

  // Not behind every submit: the waits for readers would order the copies, and hide a writer that
  // does not.
  void ReadSlab(Slab& slab, const Stream& stream) {
    if (Draw(2) == 0) return;
    std::vector<Expectation> expected;
    for (const StepLayout::FieldInfo& field : layout_->fields()) {
      const auto begin = slab.device.begin() + static_cast<long>(field.offset);
      expected.push_back({field.name, slab.ptr + field.offset,
                          Bytes(begin, begin + static_cast<long>(field.bytes()))});
    }
    Read(stream, std::move(expected));
  }

  std::optional<StepLayout> layout_;
  Field<int32_t> tokens_;
  RowsField<int16_t> tables_;
  Field<float> scales_;
  Slab slabs_[2];
};

TEST(StepWriterProperty, WhatTravelsCannotBeToldFromSendingEveryWriteInFull) {
  const CountMarks marks;
  const Seeds seeds = Seeds::FromEnvironment(kRunsOfTest);
  for (uint64_t seed = seeds.first; seed < seeds.end(); ++seed) {
    StepRun run(seed);
    for (int step = 0; step < 50; ++step) run.Step();
    const std::string verdict = run.Verdict();
    ASSERT_EQ(verdict, "") << HowToReplay(seed) << "\n" << run.Timeline();
  }
  marks.Expect(seeds, {Mark::kStepUnchanged, Mark::kStepCovered, Mark::kStepSplit, Mark::kStepApart,
                       Mark::kStepNotSent, Mark::kStepOverwritten});
}

}  // namespace
}  // namespace h2d::testing
