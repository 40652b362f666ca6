// What the owner of a step writer does: writes of fields and rows, forgetting, calls that cannot
// work.
#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "h2d/stager/pinned_stager.h"
#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {
namespace {

constexpr size_t kTables = StepFields::kTables;
constexpr size_t kScales = StepFields::kScales;

template <class T>
std::vector<T> Elements(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
Bytes BytesOf(std::span<const T> values) {
  const auto* first = reinterpret_cast<const uint8_t*>(values.data());
  return Bytes(first, first + values.size_bytes());
}

// Few different values, so that many writes change nothing.
std::vector<int16_t> RowValues(const PlanOp& op, uint64_t most) {
  std::vector<int16_t> values(op.length % (most + 1));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int16_t>(1 + (op.value + i) % 3);
  }
  return values;
}

}  // namespace

bool PlanRun::MakeWriter(Slab& slab) {
  Expected<StepWriter> writer = stager_->NewStepWriter(fields_->layout, slab.buffer.data(),
                                                       plan_.header.step_writer_options());
  if (!writer) {
    Fail("no step writer for a plan: " + writer.error().ToString());
    return false;
  }
  slab.writer.emplace(*std::move(writer));
  slab.oracle.emplace(fields_->layout);
  // Rows that were never written have no content to move.
  for (uint64_t row = 0; row < fields_->info(kTables).rows; ++row) {
    if (!Required(slab.writer->ClearRow(fields_->tables, row), "clearing a row")) return false;
    slab.oracle->SetRow(kTables, row, {});
  }
  return true;
}

void PlanRun::SetField(const PlanOp& op) {
  Slab* const slab = SlabAt(op);
  if (slab == nullptr) return;
  MutexLock lock(slab->mutex);
  Count(op);
  const DeviceCalls before = CallsOfThisThread();
  if (op.extra % 8 >= 6) {
    EditField(op, *slab);
  } else {
    WriteField(op, *slab);
  }
  if ((CallsOfThisThread() - before).all() != 0) Fail("writing a field made a device call");
}

Bytes PlanRun::NextOfStep(const PlanOp& op, const Slab& slab, size_t field, uint64_t row) const {
  const StepLayout::FieldInfo& info = fields_->info(field);
  return NextValues(op, slab.oracle->RowBytes(field, row), info.element_bytes, info.row_elements)
      .values;
}

void PlanRun::WriteField(const PlanOp& op, Slab& slab) {
  StepWriter& writer = *slab.writer;
  StepOracle& oracle = *slab.oracle;
  switch (op.extra % 8) {
    case 0:
    case 1: {
      const Bytes values = NextOfStep(op, slab, StepFields::kTokens, 0);
      Required(writer.Set(fields_->tokens, Elements<int32_t>(values)), "setting a field");
      return oracle.Set(StepFields::kTokens, values);
    }
    case 2: {
      const Bytes values = NextOfStep(op, slab, StepFields::kState, 0);
      Required(writer.Set(fields_->state, Elements<int32_t>(values)), "setting a field");
      return oracle.Set(StepFields::kState, values);
    }
    case 3: {
      const Bytes values = NextOfStep(op, slab, kScales, 0);
      Required(writer.Set(fields_->scales, Elements<float>(values)), "setting a field");
      return oracle.Set(kScales, values);
    }
    default:
      return WritePart(op, slab);
  }
}

// At once, or element by element from the end: that many writes are remembered one by one.
void PlanRun::WritePart(const PlanOp& op, Slab& slab) {
  const bool of_table = op.extra % 8 == 5;
  const size_t field = of_table ? kTables : kScales;
  const StepLayout::FieldInfo& info = fields_->info(field);
  const uint64_t row = of_table ? op.length % info.rows : 0;
  const Bytes values = NextOfStep(op, slab, field, row);
  const uint64_t count = values.size() / info.element_bytes;
  const uint64_t first = count == 0 ? 0 : op.position % count;
  const uint64_t some = std::min<uint64_t>(count - first, 1 + op.span % 5);
  const uint64_t at_once = op.flag(1) ? 1 : some;
  for (uint64_t left = some; left > 0; left -= at_once) {
    const uint64_t at = first + left - at_once;
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(at * info.element_bytes);
    const Bytes piece(begin, begin + static_cast<std::ptrdiff_t>(at_once * info.element_bytes));
    Required(of_table ? slab.writer->SetAt(fields_->tables, row, at, Elements<int16_t>(piece))
                      : slab.writer->SetAt(fields_->scales, at, Elements<float>(piece)),
             "setting a part");
    slab.oracle->SetAt(field, row, at, piece);
  }
}

// In place: one element changes, or none.
void PlanRun::EditField(const PlanOp& op, Slab& slab) {
  Reach(PlanMark::kFieldEdited);
  const auto change = [&](auto values) {
    using T = std::remove_reference_t<decltype(values[0])>;
    if (op.edit_kind() != Edit::kSame) values[op.position % values.size()] = T(op.value % 3);
  };
  if (op.extra % 2 == 0) {
    Required(slab.writer->Edit(fields_->tables, [&](std::span<int16_t> all) { change(all); }),
             "editing a field");
    const Bytes all = BytesOf(slab.writer->Values(fields_->tables));
    const uint64_t row_bytes = fields_->info(kTables).row_bytes();
    for (uint64_t row = 0; row < fields_->info(kTables).rows; ++row) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * row_bytes);
      slab.oracle->SetAt(kTables, row, 0,
                         Bytes(begin, begin + static_cast<std::ptrdiff_t>(row_bytes)));
    }
    return;
  }
  Bytes after;
  Required(slab.writer->Edit(fields_->scales,
                             [&](std::span<float> all) {
                               change(all);
                               after = BytesOf(std::span<const float>(all));
                             }),
           "editing a field");
  slab.oracle->SetAt(kScales, 0, 0, after);
}

void PlanRun::EditRows(const PlanOp& op) {
  Slab* const slab = SlabAt(op);
  if (slab == nullptr) return;
  MutexLock lock(slab->mutex);
  Count(op);
  const DeviceCalls before = CallsOfThisThread();
  ChangeRow(op, *slab);
  if ((CallsOfThisThread() - before).all() != 0) Fail("writing a row made a device call");
  CheckRows(*slab);
}

void PlanRun::ChangeRow(const PlanOp& op, Slab& slab) {
  const StepLayout::FieldInfo& info = fields_->info(kTables);
  const uint64_t a = op.position % info.rows;
  const uint64_t b = op.span % info.rows;
  const RowsField<int16_t> tables = fields_->tables;
  StepWriter& writer = *slab.writer;
  StepOracle& oracle = *slab.oracle;
  const uint64_t count = oracle.RowCount(kTables, a);
  switch (op.extra % 6) {
    case 0: {
      const auto values = RowValues(op, info.row_elements);
      if (values.size() < count) Reach(PlanMark::kRowShortened);
      Required(writer.SetRow(tables, a, values), "setting a row");
      return oracle.SetRow(kTables, a, BytesOf(std::span<const int16_t>(values)));
    }
    case 1: {
      const auto values = RowValues(op, info.row_elements - count);
      if (count != 0 && !values.empty()) Reach(PlanMark::kRowAppended);
      Required(writer.AppendToRow(tables, a, values), "appending to a row");
      return oracle.AppendToRow(kTables, a, BytesOf(std::span<const int16_t>(values)));
    }
    case 2:
      if (count != 0) Reach(PlanMark::kRowShortened);
      Required(writer.ClearRow(tables, a), "clearing a row");
      return oracle.SetRow(kTables, a, {});
    case 3:
      if (a != b) Reach(PlanMark::kRowCopied);
      Required(writer.CopyRow(tables, a, b), "copying a row");
      return oracle.CopyRow(kTables, a, b);
    case 4:
      if (a != b && count != 0) Reach(PlanMark::kRowMoved);
      Required(writer.MoveRow(tables, a, b), "moving a row");
      return oracle.MoveRow(kTables, a, b);
    default:
      if (a != b) Reach(PlanMark::kRowsSwapped);
      Required(writer.SwapRows(tables, a, b), "swapping rows");
      return oracle.SwapRows(kTables, a, b);
  }
}

void PlanRun::CheckRows(Slab& slab) {
  for (uint64_t row = 0; row < fields_->info(kTables).rows; ++row) {
    if (slab.writer->RowCount(fields_->tables, row) != slab.oracle->RowCount(kTables, row)) {
      Fail("a row has another count than was written");
    }
  }
  if (BytesOf(slab.writer->Values(fields_->tables)) != slab.oracle->FieldBytes(kTables)) {
    Fail("a table holds other values than were written");
  }
}

void PlanRun::ForgetField(const PlanOp& op) {
  Slab* const slab = SlabAt(op);
  if (slab == nullptr) return;
  MutexLock lock(slab->mutex);
  Count(op);
  const auto forget = [&](size_t field, auto handle) {
    if (slab->oracle->asks(field)) Reach(PlanMark::kFieldForgotten);
    slab->writer->Invalidate(handle);
    slab->oracle->Forget(field);
  };
  switch (op.extra % 6) {
    case 0:
      slab->writer->Invalidate();
      slab->oracle->ForgetAll();
      break;
    case 1:
      forget(StepFields::kTokens, fields_->tokens);
      break;
    case 2:
      forget(kTables, fields_->tables);
      break;
    case 3:
      forget(kScales, fields_->scales);
      break;
    default:
      break;
  }
  CheckKnown(*slab);
}

void PlanRun::CheckKnown(Slab& slab) {
  slab.oracle->MayNotice();
  const auto check = [&](size_t field, auto handle) {
    const std::optional<bool> due = slab.oracle->Knows(field);
    if (!due || *due == slab.writer->Knows(handle)) return;
    Fail(*due ? "a step does not know a field that it was told"
              : "a step claims to know a field that it cannot know");
  };
  check(StepFields::kTokens, fields_->tokens);
  check(kTables, fields_->tables);
  check(StepFields::kState, fields_->state);
  check(kScales, fields_->scales);
}

// What the old writer kept in order is the callers' to order from now on.
void PlanRun::RemakeStep(const PlanOp& op) {
  Slab* const slab = SlabAt(op);
  if (slab == nullptr) return;
  MutexLock lock(slab->mutex);
  Count(op);
  if (slab->last_stream != nullptr) Reach(PlanMark::kStepRemade);
  slab->writer.reset();
  slab->buffer.LoseMirror();
  MakeWriter(*slab);
}

void PlanRun::BadStepCall(const PlanOp& op) {
  Slab* const slab = SlabAt(op);
  StreamUse use(StepStreamAt(op));
  if (slab == nullptr || !use) return;
  MutexLock lock(slab->mutex);
  Count(op);
  const DeviceCalls before = CallsOfThisThread();
  const Expected<void> done = CallBadly(op, *slab, use);
  if (done) return Fail("a bad call of steps or batches was accepted");
  if (done.error().code != ErrorCode::kInvalidArgument) {
    Fail("a bad call got another error than its own: " + done.error().ToString());
  }
  if ((CallsOfThisThread() - before).all() != 0) {
    Fail("a bad call reached the device: " + done.error().ToString());
  }
}

Expected<void> PlanRun::CallBadly(const PlanOp& op, Slab& slab, const StreamUse& use) {
  Target& target = TargetAt(op);
  const CallValues one{.element_bytes = target.element_bytes,
                       .values = Bytes(target.element_bytes, 0)};
  BatchEntryUnderTest entry{.destination = target.destination(target.bound_index),
                            .image = one.View()};
  const auto batch = [&](const std::vector<BatchEntryUnderTest>& entries) -> Expected<void> {
    auto outcome = stager_->CopyBatch(entries, use.stream(), op.flag(0));
    if (!outcome) return ErrorOf(outcome);
    return {};
  };
  const std::vector<int32_t> seven(7);
  switch (op.variant / 2 % 8) {
    case 0:
      return slab.writer->Set(fields_->tokens, seven);
    case 1:
      return slab.writer->ClearRow(fields_->tables, fields_->info(kTables).rows);
    case 2:
      return slab.writer->Set(Field<int32_t>{fields_->tokens.layout + 1, 0}, seven);
    case 3: {  // where this slab's writer lives
      auto made = stager_->NewStepWriter(fields_->layout, slab.buffer.data(), {});
      return made ? Expected<void>() : Expected<void>(ErrorOf(made));
    }
    case 4: {
      auto made = stager_->NewStepWriter(fields_->layout, slab.buffer.data() + 4, {});
      return made ? Expected<void>() : Expected<void>(ErrorOf(made));
    }
    case 5: {
      Target& mirrored = MirroredAt(op);
      MutexLock lock(mirrored.mutex);  // nobody makes the mirror anew meanwhile
      const CallValues value{.element_bytes = mirrored.element_bytes,
                             .values = Bytes(mirrored.element_bytes, 0)};
      return batch({{.mirror = mirrored.mirror, .image = value.View()},
                    {.mirror = mirrored.mirror, .image = value.View()}});
    }
    case 6:
      return batch({entry, entry});
    default:
      return batch(std::vector<BatchEntryUnderTest>(PinnedStager::kMaxBatchCopies + 1, entry));
  }
}

}  // namespace h2d::testing
