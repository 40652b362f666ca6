// Writes a step's fields on the host and sends what changed, in one copy.
//
//   auto writer = stager->NewStepWriter(*layout, d_slab);
//   writer->Set(tokens, token_ids);          // compared as it is written, padded to its width
//   writer->SetRow(tables, row, block_ids);
//   auto outcome = writer->Submit(stream);   // one copy of the span that changed, or none
#ifndef H2D_STAGER_STEP_WRITER_H_
#define H2D_STAGER_STEP_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

#include "h2d/device/device_ptr.h"
#include "h2d/device/element.h"
#include "h2d/device/error.h"
#include "h2d/device/stream.h"
#include "h2d/stager/copy_outcome.h"
#include "h2d/stager/internal/host_bytes.h"
#include "h2d/stager/internal/wait_for_slot.h"
#include "h2d/stager/step_layout.h"
#include "h2d/stager/step_writer_options.h"

namespace h2d {

namespace internal {
class StepState;
}

// The image of one slab, its mirror and its order, as `H2DMirror` is for a plain destination: what
// the slab holds does not travel again, copies on other streams wait for the last one, and the slab
// is disjoint from every live mirror (I4). A field that is not set keeps what the device holds.
// For double buffering make one writer for each slab of the same layout.
//
// Thread-safety: one owner at a time (I8). Move-only; a moved-from writer, one whose stager is gone
// and one in a forked child answer `kFailedPrecondition`.
class StepWriter {
 public:
  StepWriter(StepWriter&&) noexcept;
  StepWriter& operator=(StepWriter&&) noexcept;
  ~StepWriter();

  // Writes `values` at the start of the field and pads the rest, if the field has padding; without
  // padding the rest stays as it is. No device call. REQUIRES, here and below: `values` do not lie
  // in what `Values` answers. Errors, here and below: a field of another layout; more values
  // than the field holds (`kInvalidArgument`); then nothing changes.
  template <Element T, HostRange R>
  requires std::is_same_v<ElementOf<R>, T>
  [[nodiscard]] Expected<void> Set(Field<T> field, const R& values) {
    return Write(At(field), 0, 0, Bytes(values), /*pad_rest=*/true);
  }

  // The same for one row, padded to the row's width: the row has that many values from now on.
  template <Element T, HostRange R>
  requires std::is_same_v<ElementOf<R>, T>
  [[nodiscard]] Expected<void> SetRow(RowsField<T> field, uint64_t row, const R& values) {
    return SetRowImage(At(field), row, Bytes(values));
  }

  // Writes `values` behind the values that the row has, and pads the rest. The row is asked for as
  // a whole: what of its earlier values the device may no longer hold, because they were
  // invalidated or something else wrote there, travels again. (Not so in a field that the graph
  // writes, where what is not set now is the graph's.)
  template <Element T, HostRange R>
  requires std::is_same_v<ElementOf<R>, T>
  [[nodiscard]] Expected<void> AppendToRow(RowsField<T> field, uint64_t row, const R& values) {
    return AppendToRowImage(At(field), row, Bytes(values));
  }

  // The row has no values from now on: all of it is padding.
  template <Element T>
  [[nodiscard]] Expected<void> ClearRow(RowsField<T> field, uint64_t row) {
    return SetRowImage(At(field), row, {});
  }

  // How many values a row has: those of its last `SetRow` and of the appends since; 0 for a row or
  // a field that does not exist.
  template <Element T>
  uint64_t RowCount(RowsField<T> field, uint64_t row) const noexcept {
    return CountOf(At(field), row);
  }

  // Writes some elements, from element `first` of the field or of the row on, and nothing else: no
  // padding, and a row has as many values as before.
  template <Element T, HostRange R>
  requires std::is_same_v<ElementOf<R>, T>
  [[nodiscard]] Expected<void> SetAt(Field<T> field, uint64_t first, const R& values) {
    return Write(At(field), 0, first, Bytes(values), /*pad_rest=*/false);
  }
  template <Element T, HostRange R>
  requires std::is_same_v<ElementOf<R>, T>
  [[nodiscard]] Expected<void> SetAt(RowsField<T> field, uint64_t row, uint64_t first,
                                     const R& values) {
    return Write(At(field), row, first, Bytes(values), /*pad_rest=*/false);
  }

  // Lets `write` edit the whole field, row after row, in place: it is called once, with a
  // `std::span<T>` that holds what was last written (arbitrary where nothing was), and all of the
  // field counts as written when it returns, also over what it itself wrote there by other calls.
  template <Element T, class F>
  requires std::is_invocable_v<F&, std::span<T>>
  [[nodiscard]] Expected<void> Edit(Field<T> field, F&& write) {
    return EditAs<T>(At(field), write);
  }
  template <Element T, class F>
  requires std::is_invocable_v<F&, std::span<T>>
  [[nodiscard]] Expected<void> Edit(RowsField<T> field, F&& write) {
    return EditAs<T>(At(field), write);
  }

  // Row `to` becomes what row `from` is, and with `MoveRow` row `from` is cleared; two rows are
  // exchanged. Values, padding and counts go together; of elements that were never written here
  // the content is arbitrary.
  template <Element T>
  [[nodiscard]] Expected<void> CopyRow(RowsField<T> field, uint64_t from, uint64_t to) {
    return CopyRowImage(At(field), from, to);
  }
  template <Element T>
  [[nodiscard]] Expected<void> MoveRow(RowsField<T> field, uint64_t from, uint64_t to) {
    return MoveRowImage(At(field), from, to);
  }
  template <Element T>
  [[nodiscard]] Expected<void> SwapRows(RowsField<T> field, uint64_t a, uint64_t b) {
    return SwapRowImages(At(field), a, b);
  }

  // The field, row after row, as it was last written here; elements that never were hold arbitrary
  // values, and so do those that the graph has written since. Empty for a field of another layout.
  // Valid until the next write.
  template <Element T>
  std::span<const T> Values(Field<T> field) const noexcept {
    return As<const T>(BytesOf(At(field)));
  }
  template <Element T>
  std::span<const T> Values(RowsField<T> field) const noexcept {
    return As<const T>(BytesOf(At(field)));
  }

  // Whether the slab holds `Values(field)`, all of it, once what was submitted has run and what was
  // written since is submitted. Never so for a field that the graph writes.
  template <Element T>
  bool Knows(Field<T> field) noexcept {
    return KnowsField(At(field));
  }
  template <Element T>
  bool Knows(RowsField<T> field) noexcept {
    return KnowsField(At(field));
  }

  // Forgets what the device holds of a field, or of all: it travels when it is next set. What was
  // set since the last submit travels with the next. The order is kept (I4).
  template <Element T>
  void Invalidate(Field<T> field) noexcept {
    ForgetField(At(field));
  }
  template <Element T>
  void Invalidate(RowsField<T> field) noexcept {
    ForgetField(At(field));
  }
  void Invalidate() noexcept;

  // Sends what changed since the last submit, in one transfer on `stream`: one copy, or one batch
  // call of entries when changed spans lie apart; of more than 64 spans several such calls, and one
  // copy each on the legacy default stream and where the device has no batch call. Nothing changed:
  // no slot is taken and the outcome is `kSkipped`. `kTrimmed` when less travelled than was set.
  // Waits, and fails, as `PinnedStager::Copy`; after an error of the device what was set is still
  // to be sent.
  [[nodiscard]] Expected<CopyOutcome> Submit(const Stream& stream) {
    return SubmitImage(stream, internal::WaitForSlot::kYes);
  }
  [[nodiscard]] Expected<CopyOutcome> TrySubmit(const Stream& stream) {
    return SubmitImage(stream, internal::WaitForSlot::kNo);
  }

  // The slab; null after a move.
  DevicePtr slab() const noexcept;

 private:
  friend class PinnedStager;
  struct FieldAt {
    uint64_t layout;
    uint32_t index;
    uint32_t element_bytes;
  };

  explicit StepWriter(std::unique_ptr<internal::StepState> state) noexcept;

  template <Element T>
  static FieldAt At(Field<T> field) noexcept {
    return {field.layout, field.index, sizeof(T)};
  }
  template <Element T>
  static FieldAt At(RowsField<T> field) noexcept {
    return {field.layout, field.index, sizeof(T)};
  }
  template <HostRange R>
  static std::span<const std::byte> Bytes(const R& values) noexcept {
    return std::as_bytes(std::span(std::ranges::data(values), std::ranges::size(values)));
  }

  template <class T, class Byte>
  static std::span<T> As(std::span<Byte> bytes) noexcept {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  // A copy of a field to edit. The writer's own room for it, which an edit within an edit makes
  // anew.
  struct Edited {
    internal::HostBytes room;
    std::span<std::byte> bytes;
  };
  template <class T, class F>
  Expected<void> EditAs(const FieldAt& field, F& write) {
    Expected<Edited> edited = BeginEdit(field);
    if (!edited) return ErrorOf(edited);
    write(As<T>(edited->bytes));
    return EndEdit(field, *std::move(edited));
  }

  static bool IsOf(const internal::StepState& state, const FieldAt& field) noexcept;
  bool Has(const FieldAt& field) const noexcept;
  Expected<void> Check(const FieldAt& field) const;
  Expected<void> DoesNotFit(const FieldAt& field, uint64_t row, uint64_t first,
                            uint64_t bytes) const;
  Expected<void> Write(const FieldAt& field, uint64_t row, uint64_t first,
                       std::span<const std::byte> values, bool pad_rest);
  Expected<Edited> BeginEdit(const FieldAt& field);
  Expected<void> EndEdit(const FieldAt& field, Edited edited);
  Expected<void> CheckRows(const FieldAt& field, uint64_t a, uint64_t b) const;
  Expected<void> SetRowImage(const FieldAt& field, uint64_t row, std::span<const std::byte> values);
  Expected<void> AppendToRowImage(const FieldAt& field, uint64_t row,
                                  std::span<const std::byte> values);
  uint64_t CountOf(const FieldAt& field, uint64_t row) const noexcept;
  bool KnowsField(const FieldAt& field) noexcept;
  Expected<void> CopyRowImage(const FieldAt& field, uint64_t from, uint64_t to);
  Expected<void> MoveRowImage(const FieldAt& field, uint64_t from, uint64_t to);
  Expected<void> SwapRowImages(const FieldAt& field, uint64_t a, uint64_t b);
  std::span<const std::byte> BytesOf(const FieldAt& field) const noexcept;
  void ForgetField(const FieldAt& field) noexcept;
  Expected<CopyOutcome> SubmitImage(const Stream& stream, internal::WaitForSlot wait);

  std::unique_ptr<internal::StepState> state_;
};

}  // namespace h2d

#endif  // H2D_STAGER_STEP_WRITER_H_
