#include "h2d/stager/step_layout.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "h2d/device/checked_size.h"

namespace h2d {
namespace {

uint64_t NextLayoutId() noexcept {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

std::string Called(const StepLayout::FieldInfo& field) {
  return "The field \"" + field.name + "\"";
}

Expected<void> CheckShape(const StepLayout::FieldInfo& field) {
  if (field.name.empty()) return InvalidArgument("A field of the layout has an empty name.");
  if (field.rows == 0 || field.row_elements == 0) {
    return InvalidArgument(Called(field) + " has " + std::to_string(field.rows) + " rows of " +
                           std::to_string(field.row_elements) +
                           " elements; it must hold at least one.");
  }
  const auto row = CheckedBytes(field.row_elements, field.element_bytes);
  const auto bytes = row ? CheckedBytes(field.rows, *row) : std::nullopt;
  if (!bytes || *bytes > StepLayout::kMaxSlabBytes) {
    return InvalidArgument(Called(field) + " of " + std::to_string(field.rows) + " rows of " +
                           std::to_string(field.row_elements) + " elements of " +
                           std::to_string(field.element_bytes) + " bytes is larger than " +
                           std::to_string(StepLayout::kMaxSlabBytes) + " bytes.");
  }
  return {};
}

}  // namespace

StepLayout::Builder::Builder() : layout_(NextLayoutId()) {}

StepLayout::Builder::Builder(Builder&& other) noexcept
    : layout_(std::exchange(other.layout_, 0)),
      fields_(std::move(other.fields_)),
      first_error_(std::move(other.first_error_)) {}

StepLayout::Builder& StepLayout::Builder::operator=(Builder&& other) noexcept {
  layout_ = std::exchange(other.layout_, 0);
  fields_ = std::move(other.fields_);
  first_error_ = std::move(other.first_error_);
  return *this;
}

uint32_t StepLayout::Builder::AddField(FieldInfo info, const Placement& placement) {
  const auto index = static_cast<uint32_t>(fields_.size());
  if (first_error_ || layout_ == 0) return index;
  if (Expected<void> placed = Place(info, placement); !placed) {
    first_error_ = std::move(placed).error();
    return index;
  }
  fields_.push_back(std::move(info));
  return index;
}

Expected<void> StepLayout::Builder::Place(FieldInfo& info, const Placement& placement) const {
  if (Expected<void> shape = CheckShape(info); !shape) return shape;
  if (fields_.size() == kMaxFields) {
    return InvalidArgument(Called(info) + " is one more than a layout holds, " +
                           std::to_string(kMaxFields) + ".");
  }
  uint64_t rows = info.rows;
  for (const FieldInfo& field : fields_) rows += field.rows;
  if (rows > kMaxRows) {
    return InvalidArgument(Called(info) + " of " + std::to_string(info.rows) +
                           " rows makes more rows than a layout holds, " +
                           std::to_string(kMaxRows) + ".");
  }
  const auto same_name = [&info](const FieldInfo& field) { return field.name == info.name; };
  if (std::any_of(fields_.begin(), fields_.end(), same_name)) {
    return InvalidArgument(Called(info) + " was added twice.");
  }
  const uint32_t alignment = placement.alignment;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > kMaxAlignment ||
      alignment < placement.least_alignment) {
    return InvalidArgument(Called(info) + " has alignment " + std::to_string(alignment) +
                           "; it must be a power of two between " +
                           std::to_string(placement.least_alignment) + " and " +
                           std::to_string(kMaxAlignment) + ".");
  }
  uint64_t end = 0;
  for (const FieldInfo& field : fields_) end = std::max(end, field.end());
  // Neither can overflow: all ends are bounded by twice `kMaxSlabBytes`.
  info.offset = placement.offset.value_or(*RoundedUp(end, alignment));
  if (info.offset % alignment != 0) {
    return InvalidArgument(Called(info) + " is placed at offset " + std::to_string(info.offset) +
                           ", which is no multiple of its alignment " + std::to_string(alignment) +
                           ".");
  }
  if (info.offset > kMaxSlabBytes || info.end() > kMaxSlabBytes) {
    return InvalidArgument(Called(info) + " at offset " + std::to_string(info.offset) +
                           " ends beyond the largest slab, " + std::to_string(kMaxSlabBytes) +
                           " bytes.");
  }
  for (const FieldInfo& field : fields_) {
    if (info.offset < field.end() && field.offset < info.end()) {
      return InvalidArgument(Called(info) + " at bytes " + std::to_string(info.offset) + " to " +
                             std::to_string(info.end()) + " overlaps \"" + field.name +
                             "\" at bytes " + std::to_string(field.offset) + " to " +
                             std::to_string(field.end()) + ".");
    }
  }
  return {};
}

Expected<StepLayout> StepLayout::Builder::Build() && {
  if (layout_ == 0) {
    return InvalidArgument("The builder of the layout was built or moved from before.");
  }
  const uint64_t id = std::exchange(layout_, 0);
  if (first_error_) return Unexpected(std::move(*first_error_));
  if (fields_.empty()) return InvalidArgument("The layout has no fields.");
  auto data = std::make_shared<Data>();
  data->id = id;
  for (const FieldInfo& field : fields_) data->slab_bytes = std::max(data->slab_bytes, field.end());
  data->fields = std::move(fields_);
  return StepLayout(std::move(data));
}

Expected<uint64_t> StepLayout::OffsetOf(uint64_t layout, uint32_t index,
                                        uint32_t element_bytes) const {
  if (layout == id() && index < fields().size() && element_bytes == fields()[index].element_bytes) {
    return fields()[index].offset;
  }
  return InvalidArgument("Field " + std::to_string(index) + " of layout " + std::to_string(layout) +
                         " with elements of " + std::to_string(element_bytes) +
                         " bytes is no field of layout " + std::to_string(id()) + ".");
}

}  // namespace h2d
