#include "h2d/stager/step_writer.h"

#include <cstring>
#include <string>
#include <utility>

#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/step_state.h"

namespace h2d {

StepWriter::StepWriter(std::unique_ptr<internal::StepState> state) noexcept
    : state_(std::move(state)) {}
StepWriter::StepWriter(StepWriter&&) noexcept = default;
StepWriter& StepWriter::operator=(StepWriter&&) noexcept = default;
StepWriter::~StepWriter() = default;

// Fields are plain data: one that a caller made up must not reach beyond the image either.
inline bool StepWriter::IsOf(const internal::StepState& state, const FieldAt& field) noexcept {
  const auto shapes = state.image().shapes();
  return field.layout == state.layout_id() && field.index < shapes.size() &&
         field.element_bytes == shapes[field.index].element_bytes;
}

// The good case of `Check`, for every write of a step.
inline bool StepWriter::Has(const FieldAt& field) const noexcept {
  return state_ != nullptr && state_->core().alive() && IsOf(*state_, field);
}

Expected<void> StepWriter::Check(const FieldAt& field) const {
  if (state_ == nullptr) return FailedPrecondition("The step writer was moved from.");
  if (Expected<void> alive = state_->core().CheckAlive(); !alive) return alive;
  if (!IsOf(*state_, field)) {
    return InvalidArgument(
        "Field " + std::to_string(field.index) + " of layout " + std::to_string(field.layout) +
        " with elements of " + std::to_string(field.element_bytes) +
        " bytes is no field of this writer's layout, " + std::to_string(state_->layout_id()) + ".");
  }
  return {};
}

Expected<void> StepWriter::DoesNotFit(const FieldAt& field, uint64_t row, uint64_t first,
                                      uint64_t bytes) const {
  const StepLayout::FieldInfo& info = state_->layout().fields()[field.index];
  return InvalidArgument("Row " + std::to_string(row) + " of the field \"" + info.name +
                         "\" cannot take " + std::to_string(bytes / field.element_bytes) +
                         " values from element " + std::to_string(first) + " on: it has " +
                         std::to_string(info.rows) + " rows of " +
                         std::to_string(info.row_elements) + " elements.");
}

Expected<void> StepWriter::Write(const FieldAt& field, uint64_t row, uint64_t first,
                                 std::span<const std::byte> values, bool pad_rest) {
  if (!Has(field)) [[unlikely]]
    return Check(field);
  internal::StepImage& image = state_->image();
  if (!image.shapes()[field.index].Takes(row, first, values.size())) [[unlikely]] {
    return DoesNotFit(field, row, first, values.size());
  }
  image.Write({field.index, row, first * field.element_bytes}, values, pad_rest);
  return {};
}

Expected<StepWriter::Edited> StepWriter::BeginEdit(const FieldAt& field) {
  if (Expected<void> valid = Check(field); !valid) return ErrorOf(valid);
  Expected<internal::HostBytes> room = state_->TakeScratch();
  if (!room) return ErrorOf(room);
  const std::span<const std::byte> held = state_->image().BytesOf(field.index);
  std::memcpy(room->get(), held.data(), held.size());
  const std::span<std::byte> bytes(room->get(), held.size());
  return Edited{*std::move(room), bytes};
}

// The callback may have done anything with the writer, so the field is checked anew.
Expected<void> StepWriter::EndEdit(const FieldAt& field, Edited edited) {
  if (Expected<void> valid = Check(field); !valid) return valid;
  std::span<const std::byte> rest = edited.bytes;
  const uint64_t row_bytes = state_->layout().fields()[field.index].row_bytes();
  for (uint64_t row = 0; !rest.empty(); ++row, rest = rest.subspan(row_bytes)) {
    state_->image().Write({field.index, row, 0}, rest.first(row_bytes), /*pad_rest=*/false);
  }
  state_->GiveScratch(std::move(edited.room));
  return {};
}

Expected<void> StepWriter::SetRowImage(const FieldAt& field, uint64_t row,
                                       std::span<const std::byte> values) {
  Expected<void> written = Write(field, row, 0, values, /*pad_rest=*/true);
  if (written) state_->image().SetCount(field.index, row, values.size() / field.element_bytes);
  return written;
}

// The padding behind the row's values is compared again, which costs less than to remember it.
Expected<void> StepWriter::AppendToRowImage(const FieldAt& field, uint64_t row,
                                            std::span<const std::byte> values) {
  if (!Has(field)) [[unlikely]]
    return Check(field);
  internal::StepImage& image = state_->image();
  const uint64_t count = CountOf(field, row);
  if (!image.shapes()[field.index].Takes(row, count, values.size())) [[unlikely]] {
    return DoesNotFit(field, row, count, values.size());
  }
  const uint64_t held_bytes = count * field.element_bytes;
  image.AskAgain(field.index, row, held_bytes);
  image.Write({field.index, row, held_bytes}, values, /*pad_rest=*/true);
  image.SetCount(field.index, row, count + values.size() / field.element_bytes);
  return {};
}

uint64_t StepWriter::CountOf(const FieldAt& field, uint64_t row) const noexcept {
  if (BytesOf(field).empty() || row >= state_->layout().fields()[field.index].rows) return 0;
  return state_->image().Count(field.index, row);
}

Expected<void> StepWriter::CheckRows(const FieldAt& field, uint64_t a, uint64_t b) const {
  if (Expected<void> valid = Check(field); !valid) return valid;
  const StepLayout::FieldInfo& info = state_->layout().fields()[field.index];
  if (a < info.rows && b < info.rows) return {};
  return InvalidArgument("Rows " + std::to_string(a) + " and " + std::to_string(b) +
                         " are not both among the " + std::to_string(info.rows) +
                         " rows of the field \"" + info.name + "\".");
}

Expected<void> StepWriter::CopyRowImage(const FieldAt& field, uint64_t from, uint64_t to) {
  if (Expected<void> valid = CheckRows(field, from, to); !valid || from == to) return valid;
  internal::StepImage& image = state_->image();
  const uint64_t bytes = state_->layout().fields()[field.index].row_bytes();
  image.Write({field.index, to, 0}, image.BytesOf(field.index).subspan(from * bytes, bytes),
              /*pad_rest=*/false);
  image.SetCount(field.index, to, image.Count(field.index, from));
  return {};
}

Expected<void> StepWriter::MoveRowImage(const FieldAt& field, uint64_t from, uint64_t to) {
  Expected<void> copied = CopyRowImage(field, from, to);
  if (!copied || from == to) return copied;
  return SetRowImage(field, from, {});
}

Expected<void> StepWriter::SwapRowImages(const FieldAt& field, uint64_t a, uint64_t b) {
  // A row that is exchanged with itself is not written: the device may hold what is unknown here.
  if (Expected<void> valid = CheckRows(field, a, b); !valid || a == b) return valid;
  internal::StepImage& image = state_->image();
  const uint64_t bytes = state_->layout().fields()[field.index].row_bytes();
  Expected<internal::HostBytes> kept = state_->TakeScratch();
  if (!kept) return ErrorOf(kept);
  const auto rows = image.BytesOf(field.index);
  std::memcpy(kept->get(), rows.data() + a * bytes, bytes);
  image.Write({field.index, a, 0}, rows.subspan(b * bytes, bytes), /*pad_rest=*/false);
  image.Write({field.index, b, 0}, {kept->get(), bytes}, /*pad_rest=*/false);
  state_->GiveScratch(*std::move(kept));
  const uint64_t count = image.Count(field.index, a);
  image.SetCount(field.index, a, image.Count(field.index, b));
  image.SetCount(field.index, b, count);
  return {};
}

std::span<const std::byte> StepWriter::BytesOf(const FieldAt& field) const noexcept {
  if (state_ == nullptr || !IsOf(*state_, field)) return {};
  return state_->image().BytesOf(field.index);
}

bool StepWriter::KnowsField(const FieldAt& field) noexcept {
  return !BytesOf(field).empty() && state_->Knows(field.index);
}

void StepWriter::ForgetField(const FieldAt& field) noexcept {
  if (!BytesOf(field).empty()) state_->image().Forget(field.index);
}

void StepWriter::Invalidate() noexcept {
  if (state_ != nullptr) state_->image().ForgetAll();
}

Expected<CopyOutcome> StepWriter::SubmitImage(const Stream& stream, internal::WaitForSlot wait) {
  if (state_ == nullptr) return FailedPrecondition("The step writer was moved from.");
  return state_->core().SubmitStep(*state_, stream, wait);
}

DevicePtr StepWriter::slab() const noexcept {
  return state_ == nullptr ? DevicePtr() : state_->slab();
}

}  // namespace h2d
