// The image of a step: what the slab holds, what changed, and which spans must travel.
#ifndef H2D_STAGER_INTERNAL_STEP_IMAGE_H_
#define H2D_STAGER_INTERNAL_STEP_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "h2d/device/error.h"
#include "h2d/stager/internal/host_bytes.h"
#include "h2d/stager/internal/image_bytes.h"
#include "h2d/stager/step_layout.h"

namespace h2d::internal {

// Pure host logic, no device. Each byte of a field is *unknown* (nobody said what the device
// holds), *pending* (written here, different, not yet sent) or *known* (the device holds the
// image's byte once everything enqueued has run). Bytes between fields belong to the slab: they are
// 0 and may always be sent.
//
// The writes since the last submit are a log of exact spans: when the content is forgotten
// meanwhile, they must travel after all, and not one byte beside them. What is known or pending is
// kept per row as one span; what does not touch it replaces it, which loses knowledge and never
// truth. In steady state writing allocates nothing. Not thread-safe.
class StepImage {
 public:
  static Expected<StepImage> Create(const StepLayout& layout);

  // What every write of a step asks about a field, in half a cache line of its own.
  struct Shape {
    uint32_t first_row = 0;  // in `rows_`
    uint32_t element_bytes = 0;
    uint64_t rows = 0;
    uint64_t row_elements = 0;
    const std::byte* pad = nullptr;  // one element; null: the field has no padding

    // Whether `bytes` bytes of whole elements from element `first` on lie within row `row`.
    bool Takes(uint64_t row, uint64_t first, uint64_t bytes) const noexcept {
      return row < rows && first <= row_elements && bytes <= (row_elements - first) * element_bytes;
    }
  };
  std::span<const Shape> shapes() const noexcept { return shapes_; }

  // Where a write goes. `first_byte` counts from the row's start.
  struct Place {
    uint32_t field = 0;
    uint64_t row = 0;
    uint64_t first_byte = 0;
  };

  // Writes whole elements at `place` and, when the field has padding and `pad_rest`, pads the row
  // behind them. Unchanged bytes cost one comparison. REQUIRES: the values fit the row.
  //
  // Inline is what an unchanged step does for each of its fields: little beside that comparison.
  [[gnu::always_inline]] void Write(const Place& place, std::span<const std::byte> values,
                                    bool pad_rest) {
    const Shape& field = shapes_[place.field];
    const uint32_t index = field.first_row + static_cast<uint32_t>(place.row);
    const Row& row = rows_[index];
    const uint64_t begin = row.offset + place.first_byte;
    const uint64_t pad_bytes =
        pad_rest && field.pad != nullptr ? row.bytes - place.first_byte - values.size() : 0;
    const ByteSpan asked{begin, begin + values.size() + pad_bytes};
    if (pad_bytes > 0) {
      return WriteImage(index, asked,
                        ImageBytes{.values = values.data(),
                                   .value_bytes = values.size(),
                                   .pad = field.pad,
                                   .pad_bytes = pad_bytes,
                                   .element_bytes = field.element_bytes});
    }
    if (!row.Knows(asked)) return WriteUnknown(index, begin, values, field.element_bytes);
    if (!SameBytes(bytes_.get() + begin, values.data(), values.size()))
      return WriteDiffering(index, begin, values, field.element_bytes);
    asked_bytes_ += asked.bytes();
    Log(index, asked, {});
  }

  // As a write of the bytes that the image has at the row's start: they travel if the device may
  // not hold them. Not in a field that the device writes. REQUIRES: that many were written here.
  void AskAgain(uint32_t field, uint64_t row, uint64_t bytes);

  // A field's bytes as they were last written here; the content of unknown bytes is arbitrary.
  std::span<const std::byte> BytesOf(uint32_t field) const noexcept;

  // Whether all bytes of a field are known or pending; never for one that the device writes.
  bool Knows(uint32_t field) const noexcept;

  // How many elements of a row, from its start on, are values and not padding, as its writer says.
  uint64_t Count(uint32_t field, uint64_t row) const noexcept { return RowOf(field, row).count; }
  void SetCount(uint32_t field, uint64_t row, uint64_t count) noexcept {
    rows_[shapes_[field].first_row + row].count = count;
  }

  // The bytes of a row that are known or pending.
  ByteSpan KnownSpan(uint32_t field, uint64_t row) const noexcept;

  // Forgets what the device holds; what was written since the last submit becomes pending.
  void Forget(uint32_t field) noexcept;
  void ForgetAll() noexcept;

  // The spans of the slab that must travel, in ascending order, valid until the next write.
  // Neighbours are joined when at most `cover_gap_bytes` lie between them and all of these are
  // known.
  std::span<const ByteSpan> SpansToSend(uint64_t cover_gap_bytes);
  const std::byte* data() const noexcept { return bytes_.get(); }

  // How many bytes the writes since the last submit were, each write counted, and all that was
  // asked for again.
  uint64_t asked_bytes() const noexcept { return asked_bytes_; }

  // The spans were enqueued: nothing is pending any more, and of fields that the device writes
  // nothing is known.
  void MarkSent() noexcept;

 private:
  struct Row {
    uint64_t offset = 0;  // in the slab
    uint64_t bytes = 0;
    ByteSpan known;  // or pending; in the slab
    uint64_t count = 0;
    bool device_written = false;

    bool Knows(ByteSpan span) const noexcept {
      return !device_written && known.begin <= span.begin && span.end <= known.end;
    }
  };
  struct Written {
    uint32_t row = 0;
    ByteSpan asked;    // in the slab
    ByteSpan pending;  // within `asked`
  };

  StepImage(const StepLayout& layout, HostBytes bytes);

  const Row& RowOf(uint32_t field, uint64_t row) const noexcept {
    return rows_[shapes_[field].first_row + row];
  }

  // Writes of values to a row, from `begin` in the slab on: where not all is known; where all is,
  // and some differs; and whichever.
  void WriteUnknown(uint32_t row, uint64_t begin, std::span<const std::byte> values,
                    uint32_t element_bytes);
  void WriteDiffering(uint32_t row, uint64_t begin, std::span<const std::byte> values,
                      uint32_t element_bytes);
  void WriteSearched(uint32_t row, uint64_t begin, std::span<const std::byte> values,
                     uint32_t element_bytes);
  // Any write, also of padding.
  void WriteImage(uint32_t row, ByteSpan asked, const ImageBytes& image);

  // Takes the bytes of `elements`, counted from `asked`'s start, from `values`: they are pending.
  void Replace(uint32_t row, ByteSpan asked, ByteSpan elements, const std::byte* values) {
    asked_bytes_ += asked.bytes();
    pending_ = true;
    Log(row, asked, {asked.begin + elements.begin, asked.begin + elements.end});
    std::memcpy(bytes_.get() + asked.begin + elements.begin, values + elements.begin,
                elements.bytes());
  }

  // Elements written one by one become one entry, and writes of nothing none.
  void Log(uint32_t row, ByteSpan asked, ByteSpan pending) {
    if (asked.empty()) return;
    if (logged_ > 0 && log_[logged_ - 1].row == row && log_[logged_ - 1].asked.end == asked.begin) {
      return Extend(log_[logged_ - 1], asked, pending);
    }
    if (logged_ == log_.size()) [[unlikely]]
      MakeRoomInLog();
    // One by one, or they would be put together first and copied behind their own stores.
    Written& written = log_[logged_++];
    written.row = row;
    written.asked = asked;
    written.pending = pending;
  }
  static void Extend(Written& last, ByteSpan asked, ByteSpan pending) noexcept;
  ByteSpan Differing(const Row& row, ByteSpan asked, const ImageBytes& image) const noexcept;
  void MakeRoomInLog();
  std::span<Written> logged() noexcept { return {log_.data(), logged_}; }
  bool AllKnown(ByteSpan span) const noexcept;
  void JoinSpans(uint64_t cover_gap_bytes);
  bool MayCover(ByteSpan gap, uint64_t cover_gap_bytes) const noexcept;

  StepLayout layout_;
  HostBytes bytes_;
  std::vector<Row> rows_;      // by offset
  std::vector<Shape> shapes_;  // of each field
  std::vector<Written> log_;   // its first `logged_` entries; the others are room
  size_t logged_ = 0;
  std::vector<ByteSpan> spans_;
  uint64_t asked_bytes_ = 0;
  bool pending_ = false;             // whether any entry of the log is
  bool any_device_written_ = false;  // whether any row is
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_STEP_IMAGE_H_
