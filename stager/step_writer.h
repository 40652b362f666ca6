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
  // padding the rest stays as it is. No device call. Errors: a field of another layout; more values
  // than the field holds (`kInvalidArgument`); then nothing changes.
  template <Element T, HostRange R>
  requires std::is_same_v<ElementOf<R>, T>
  [[nodiscard]] Expected<void> Set(Field<T> field, const R& values) {
    return Write(At(field), 0, 0, Bytes(values), /*pad_rest=*/true);
  }

  // The same for one row, padded to the row's width. No values clear it.
  template <Element T, HostRange R>
  requires std::is_same_v<ElementOf<R>, T>
  [[nodiscard]] Expected<void> SetRow(RowsField<T> field, uint64_t row, const R& values) {
    return Write(At(field), row, 0, Bytes(values), /*pad_rest=*/true);
  }

  // Writes some elements, from element `first` of the field or of the row on, and nothing else.
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
  // field counts as written.
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

  // Row `from` is written over row `to`; the two are exchanged.
  template <Element T>
  [[nodiscard]] Expected<void> CopyRow(RowsField<T> field, uint64_t from, uint64_t to) {
    return CopyRowImage(At(field), from, to);
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
  // call of entries when changed spans lie apart (on the legacy default stream, which takes no
  // batches, one copy each). Nothing changed: no slot is taken and the outcome is `kSkipped`.
  // `kTrimmed` when less travelled than was set. Waits, and fails, as `PinnedStager::Copy`; after
  // an error of the device what was set is still to be sent.
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
  template <class T, class F>
  Expected<void> EditAs(const FieldAt& field, F& write) {
    auto scratch = ScratchFor(field);
    if (!scratch) return ErrorOf(scratch);
    write(As<T>(*scratch));
    WriteAll(field.index, *scratch);
    return {};
  }

  Expected<void> Check(const FieldAt& field) const;
  Expected<void> Write(const FieldAt& field, uint64_t row, uint64_t first,
                       std::span<const std::byte> values, bool pad_rest);
  Expected<std::span<std::byte>> ScratchFor(const FieldAt& field);
  void WriteAll(uint32_t field, std::span<const std::byte> bytes);
  Expected<void> CheckRows(const FieldAt& field, uint64_t a, uint64_t b) const;
  Expected<void> CopyRowImage(const FieldAt& field, uint64_t from, uint64_t to);
  Expected<void> SwapRowImages(const FieldAt& field, uint64_t a, uint64_t b);
  std::span<const std::byte> BytesOf(const FieldAt& field) const noexcept;
  void ForgetField(const FieldAt& field) noexcept;
  Expected<CopyOutcome> SubmitImage(const Stream& stream, internal::WaitForSlot wait);

  std::unique_ptr<internal::StepState> state_;
};

}  // namespace h2d

#endif  // H2D_STAGER_STEP_WRITER_H_
