#include "h2d/tests/support/step_oracle.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace h2d::testing {
namespace {

uint8_t AsByte(std::byte byte) { return static_cast<uint8_t>(byte); }

}  // namespace

StepOracle::StepOracle(const StepLayout& layout) : layout_(layout), image_(layout.slab_bytes()) {
  for (const StepLayout::FieldInfo& field : layout.fields()) {
    first_row_.push_back(rows_.size());
    for (uint64_t row = 0; row < field.rows; ++row) {
      rows_.push_back({.offset = field.offset + row * field.row_bytes(),
                       .bytes = field.row_bytes(),
                       .count = 0,
                       .known = Known::kNothing});
    }
  }
}

void StepOracle::Write(size_t field, uint64_t row, uint64_t first, Bytes bytes, bool pad_rest) {
  const StepLayout::FieldInfo& info = Info(field);
  const uint64_t begin = first * info.element_bytes;
  Row& at = RowOf(field, row);
  while (pad_rest && info.padded && begin + bytes.size() < at.bytes) {
    std::transform(info.pad.begin(), info.pad.begin() + info.element_bytes,
                   std::back_inserter(bytes), AsByte);
  }
  if (bytes.empty()) return;
  const auto held = image_.begin() + static_cast<std::ptrdiff_t>(at.offset + begin);
  const bool equal = std::equal(bytes.begin(), bytes.end(), held);
  const Known before = info.device_written ? Known::kNothing : at.known;
  if (!equal || before == Known::kNothing) differs_ = true;
  if (!equal || before != Known::kAll) same_ = false;
  const bool whole = bytes.size() == at.bytes || before == Known::kAll;
  at.known = whole ? Known::kAll : Known::kSome;
  std::copy(bytes.begin(), bytes.end(), held);
  asked_.push_back({at.offset + begin, std::move(bytes)});
}

void StepOracle::SetRow(size_t field, uint64_t row, const Bytes& values) {
  Write(field, row, 0, values, /*pad_rest=*/true);
  RowOf(field, row).count = values.size() / Info(field).element_bytes;
}

void StepOracle::AppendToRow(size_t field, uint64_t row, const Bytes& values) {
  uint64_t& count = RowOf(field, row).count;
  const uint64_t added = values.size() / Info(field).element_bytes;
  if (Info(field).device_written) {
    Write(field, row, count, values, /*pad_rest=*/true);
  } else {
    Bytes whole = RowBytes(field, row);
    whole.resize(count * Info(field).element_bytes);
    whole.insert(whole.end(), values.begin(), values.end());
    Write(field, row, 0, std::move(whole), /*pad_rest=*/true);
  }
  count += added;
}

void StepOracle::CopyRow(size_t field, uint64_t from, uint64_t to) {
  if (from == to) return;
  Write(field, to, 0, RowBytes(field, from), /*pad_rest=*/false);
  RowOf(field, to).count = RowOf(field, from).count;
}

void StepOracle::MoveRow(size_t field, uint64_t from, uint64_t to) {
  if (from == to) return;
  CopyRow(field, from, to);
  SetRow(field, from, {});
}

void StepOracle::SwapRows(size_t field, uint64_t a, uint64_t b) {
  if (a == b) return;
  const Bytes kept = RowBytes(field, a);
  Write(field, a, 0, RowBytes(field, b), /*pad_rest=*/false);
  Write(field, b, 0, kept, /*pad_rest=*/false);
  std::swap(RowOf(field, a).count, RowOf(field, b).count);
}

Bytes StepOracle::RowBytes(size_t field, uint64_t row) const {
  const Row& at = RowOf(field, row);
  const auto begin = image_.begin() + static_cast<std::ptrdiff_t>(at.offset);
  return Bytes(begin, begin + static_cast<std::ptrdiff_t>(at.bytes));
}

Bytes StepOracle::FieldBytes(size_t field) const {
  Bytes all;
  for (uint64_t row = 0; row < Info(field).rows; ++row) {
    const Bytes image = RowBytes(field, row);
    all.insert(all.end(), image.begin(), image.end());
  }
  return all;
}

void StepOracle::Forget(size_t field) {
  for (uint64_t row = 0; row < Info(field).rows; ++row) RowOf(field, row).known = Known::kNothing;
  // What was set and not yet sent travels after all.
  if (asks(field)) {
    same_ = false;
    differs_ = true;
  }
}

void StepOracle::ForgetAll() {
  for (size_t field = 0; field < first_row_.size(); ++field) Forget(field);
}

void StepOracle::Overwritten() {
  ForgetAll();
  overwritten_ = true;
}

void StepOracle::MayNotice() {
  if (!overwritten_) return;
  for (Row& row : rows_) {
    if (row.known == Known::kAll) row.known = Known::kSome;
  }
}

void StepOracle::Sent() {
  MayNotice();
  overwritten_ = false;
  asked_.clear();
  same_ = true;
  differs_ = false;
}

uint64_t StepOracle::asked_bytes() const noexcept {
  uint64_t sum = 0;
  for (const Asked& write : asked_) sum += write.bytes.size();
  return sum;
}

bool StepOracle::asks(size_t field) const {
  const StepLayout::FieldInfo& info = Info(field);
  return std::any_of(asked_.begin(), asked_.end(), [&](const Asked& write) {
    return write.offset >= info.offset && write.offset < info.end();
  });
}

std::optional<bool> StepOracle::Knows(size_t field) const {
  const StepLayout::FieldInfo& info = Info(field);
  if (info.device_written) return false;
  bool all = true;
  for (uint64_t row = 0; row < info.rows; ++row) {
    const Known known = RowOf(field, row).known;
    if (known == Known::kNothing) return false;
    all = all && known == Known::kAll;
  }
  if (all) return true;
  return std::nullopt;
}

}  // namespace h2d::testing
