#include "h2d/stager/internal/step_image.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {
namespace {

// The smallest span that holds both.
ByteSpan Hull(ByteSpan a, ByteSpan b) noexcept {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

bool Touch(ByteSpan a, ByteSpan b) noexcept { return a.begin <= b.end && b.begin <= a.end; }

}  // namespace

Expected<StepImage> StepImage::Create(const StepLayout& layout) {
  auto bytes = AllocateHostBytes(layout.slab_bytes());
  if (!bytes) return ErrorOf(bytes);
  std::memset(bytes->get(), 0, layout.slab_bytes());
  return StepImage(layout, std::move(*bytes));
}

StepImage::StepImage(const StepLayout& layout, HostBytes bytes)
    : layout_(layout), bytes_(std::move(bytes)), shapes_(layout.fields().size()) {
  const auto& fields = layout.fields();
  std::vector<uint32_t> by_offset(fields.size());
  std::iota(by_offset.begin(), by_offset.end(), 0);
  std::sort(by_offset.begin(), by_offset.end(),
            [&](uint32_t a, uint32_t b) { return fields[a].offset < fields[b].offset; });
  for (const uint32_t index : by_offset) {
    const StepLayout::FieldInfo& field = fields[index];
    shapes_[index] = Shape{.first_row = static_cast<uint32_t>(rows_.size()),
                           .element_bytes = field.element_bytes,
                           .rows = field.rows,
                           .row_elements = field.row_elements,
                           .pad = field.padded ? field.pad.data() : nullptr};
    any_device_written_ = any_device_written_ || field.device_written;
    for (uint64_t row = 0; row < field.rows; ++row) {
      rows_.push_back(Row{.offset = field.offset + row * field.row_bytes(),
                          .bytes = field.row_bytes(),
                          .known = {},
                          .count = 0,
                          .device_written = field.device_written});
    }
  }
  log_.resize(2 * rows_.size());
  spans_.reserve(2 * rows_.size());
}

// Of a row of which nothing is known all is replaced. Word by word, because compilers put a span
// that came in two registers together in memory, and wait for it there: 10 ns a field.
void StepImage::WriteUnknown(uint32_t index, uint64_t begin, std::span<const std::byte> values,
                             uint32_t element_bytes) {
  Row& row = rows_[index];
  if (values.empty() || !row.known.empty() || row.device_written)
    return WriteSearched(index, begin, values, element_bytes);
  row.known.begin = begin;
  row.known.end = begin + values.size();
  Replace(index, row.known, {0, values.size()}, values.data());
}

// What changed usually did so in its first and in its last word: then nothing is searched.
void StepImage::WriteDiffering(uint32_t index, uint64_t begin, std::span<const std::byte> values,
                               uint32_t element_bytes) {
  if (values.size() >= sizeof(uint64_t)) {
    const ByteSpan differs = DifferenceAtEnds(values.data(), bytes_.get() + begin, values.size());
    if (!differs.empty()) {
      return Replace(index, {begin, begin + values.size()}, WholeElements(differs, element_bytes),
                     values.data());
    }
  }
  WriteSearched(index, begin, values, element_bytes);
}

void StepImage::WriteSearched(uint32_t index, uint64_t begin, std::span<const std::byte> values,
                              uint32_t element_bytes) {
  WriteImage(
      index, {begin, begin + values.size()},
      ImageBytes{
          .values = values.data(), .value_bytes = values.size(), .element_bytes = element_bytes});
}

void StepImage::WriteImage(uint32_t index, ByteSpan asked, const ImageBytes& image) {
  if (asked.empty()) return;
  Row& row = rows_[index];
  std::byte* const held = bytes_.get() + asked.begin;
  asked_bytes_ += asked.bytes();
  const bool known = row.Knows(asked);
  const ByteSpan differs =
      known ? Difference(image, held, image.bytes()) : Differing(row, asked, image);
  if (differs.empty()) return Log(index, asked, {});
  // Whole elements, as everything that travels.
  const ByteSpan elements = WholeElements(differs, image.element_bytes);
  Fill(image, elements, held + elements.begin);
  if (!known) row.known = Touch(row.known, asked) ? Hull(row.known, asked) : asked;
  pending_ = true;
  Log(index, asked, {asked.begin + elements.begin, asked.begin + elements.end});
}

void StepImage::AskAgain(uint32_t field, uint64_t row, uint64_t bytes) {
  const uint32_t index = shapes_[field].first_row + static_cast<uint32_t>(row);
  Row& at = rows_[index];
  if (at.device_written) return;
  const ByteSpan asked{at.offset, at.offset + bytes};
  asked_bytes_ += bytes;
  if (bytes == 0 || at.Knows(asked)) return Log(index, asked, {});
  at.known = Touch(at.known, asked) ? Hull(at.known, asked) : asked;
  pending_ = true;
  Log(index, asked, asked);
}

// What `image` changes of a row that is not known in all of `asked`. Bytes before the known span's
// start are unknown too, so only a write that starts within it is compared.
ByteSpan StepImage::Differing(const Row& row, ByteSpan asked,
                              const ImageBytes& image) const noexcept {
  const bool comparable =
      !row.device_written && row.known.begin <= asked.begin && asked.begin < row.known.end;
  const uint64_t compared = comparable ? row.known.end - asked.begin : 0;
  const ByteSpan differs = Difference(image, bytes_.get() + asked.begin, compared);
  return {differs.empty() ? compared : differs.begin, image.bytes()};
}

void StepImage::Extend(Written& last, ByteSpan asked, ByteSpan pending) noexcept {
  last.asked.end = asked.end;
  last.pending = Hull(last.pending, pending);
}

// Joins entries of a row that touch: rewriting the same bytes for ever needs no more memory. When
// that gains little the log grows, or the next few writes would sort it again.
void StepImage::MakeRoomInLog() {
  Reached(Mark::kStepLogJoined);
  std::sort(log_.begin(), log_.end(),
            [](const Written& a, const Written& b) { return a.asked.begin < b.asked.begin; });
  size_t kept = 0;
  for (size_t i = 1; i < log_.size(); ++i) {
    if (log_[kept].row == log_[i].row && Touch(log_[kept].asked, log_[i].asked)) {
      log_[kept].asked = Hull(log_[kept].asked, log_[i].asked);
      log_[kept].pending = Hull(log_[kept].pending, log_[i].pending);
    } else {
      log_[++kept] = log_[i];
    }
  }
  logged_ = kept + 1;
  if (logged_ > log_.size() / 2) log_.resize(2 * log_.size());
}

std::span<const std::byte> StepImage::BytesOf(uint32_t field) const noexcept {
  const StepLayout::FieldInfo& info = layout_.fields()[field];
  return {bytes_.get() + info.offset, info.bytes()};
}

ByteSpan StepImage::KnownSpan(uint32_t field, uint64_t row) const noexcept {
  const Row& at = RowOf(field, row);
  if (at.known.empty()) return {};
  return {at.known.begin - at.offset, at.known.end - at.offset};
}

bool StepImage::Knows(uint32_t field) const noexcept {
  const StepLayout::FieldInfo& info = layout_.fields()[field];
  return AllKnown({info.offset, info.end()});
}

void StepImage::Forget(uint32_t field) noexcept {
  const uint32_t first = shapes_[field].first_row;
  const uint64_t end = first + layout_.fields()[field].rows;
  for (uint64_t row = first; row < end; ++row) rows_[row].known = {};
  for (Written& written : logged()) {
    if (written.row >= first && written.row < end) written.pending = written.asked;
  }
  pending_ = pending_ || logged_ > 0;
}

void StepImage::ForgetAll() noexcept {
  for (Row& row : rows_) row.known = {};
  for (Written& written : logged()) written.pending = written.asked;
  pending_ = logged_ > 0;
}

// Whether the device holds, or will be sent, the image's bytes in all of `span`.
bool StepImage::AllKnown(ByteSpan span) const noexcept {
  auto row = std::upper_bound(rows_.begin(), rows_.end(), span.begin,
                              [](uint64_t at, const Row& r) { return at < r.offset; });
  if (row != rows_.begin()) --row;
  for (; row != rows_.end() && row->offset < span.end; ++row) {
    const uint64_t begin = std::max(span.begin, row->offset);
    const uint64_t end = std::min(span.end, row->offset + row->bytes);
    if (begin >= end) continue;
    if (!row->Knows({begin, end})) return false;
  }
  return true;
}

// Whether the bytes between two spans travel with them.
bool StepImage::MayCover(ByteSpan gap, uint64_t cover_gap_bytes) const noexcept {
  if (gap.bytes() > cover_gap_bytes) return false;
  const bool known = AllKnown(gap);
  Reached(known ? Mark::kStepCovered : Mark::kStepSplit);
  return known;
}

std::span<const ByteSpan> StepImage::SpansToSend(uint64_t cover_gap_bytes) {
  spans_.clear();
  if (!pending_) return spans_;
  bool ascending = true;  // fields are usually written in the order in which they lie
  for (const Written& written : logged()) {
    const ByteSpan next = written.pending;
    if (next.empty()) continue;
    if (!spans_.empty() && spans_.back().begin <= next.begin && next.begin <= spans_.back().end) {
      spans_.back().end = std::max(spans_.back().end, next.end);
      continue;
    }
    ascending = ascending && (spans_.empty() || spans_.back().begin <= next.begin);
    spans_.push_back(next);
  }
  if (!ascending) {
    std::sort(spans_.begin(), spans_.end(),
              [](ByteSpan a, ByteSpan b) { return a.begin < b.begin; });
  }
  JoinSpans(cover_gap_bytes);
  return spans_;
}

void StepImage::JoinSpans(uint64_t cover_gap_bytes) {
  size_t kept = 0;
  for (size_t i = 1; i < spans_.size(); ++i) {
    ByteSpan& last = spans_[kept];
    const ByteSpan next = spans_[i];
    if (next.begin <= last.end || MayCover({last.end, next.begin}, cover_gap_bytes)) {
      last.end = std::max(last.end, next.end);
    } else {
      spans_[++kept] = next;
    }
  }
  if (!spans_.empty()) spans_.resize(kept + 1);
}

void StepImage::MarkSent() noexcept {
  if (any_device_written_) {
    for (const Written& written : logged()) {
      if (rows_[written.row].device_written) rows_[written.row].known = {};
    }
  }
  logged_ = 0;
  asked_bytes_ = 0;
  pending_ = false;
}

}  // namespace h2d::internal
