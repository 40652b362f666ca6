#include "h2d/tests/support/values.h"

#include <algorithm>

namespace h2d::testing {
namespace {

// The element that `seed` stands for: among them both zeros, two NaNs, all ones and small numbers,
// in the layout of a little-endian float, double or integer.
Bytes MakeElement(uint8_t seed, uint32_t element_bytes) {
  Bytes element(element_bytes, 0);
  uint8_t& top = element.back();
  switch (seed % 8) {
    case 0:
      break;  // 0.0
    case 1:
      top = 0x80;  // -0.0
      break;
    case 2:
      element.assign(element_bytes, 0xff);  // -1, a NaN
      break;
    case 3:
      element.assign(element_bytes, 0xff);  // a NaN of another payload
      element.front() = 0xfe;
      break;
    default:
      element.front() = seed;
      break;
  }
  return element;
}

void SetElement(Bytes& values, uint64_t index, const Bytes& element) {
  std::copy(element.begin(), element.end(),
            values.begin() + static_cast<std::ptrdiff_t>(index * element.size()));
}

void SetRun(Bytes& values, uint64_t first, uint64_t count, uint8_t seed, uint32_t element_bytes) {
  for (uint64_t i = 0; i < count; ++i) {
    SetElement(values, first + i, MakeElement(static_cast<uint8_t>(seed + i), element_bytes));
  }
}

void FlipZero(Bytes& values, uint64_t index, uint32_t element_bytes) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(index * element_bytes);
  const bool zero = std::all_of(first, first + element_bytes, [](uint8_t b) { return b == 0; });
  SetElement(values, index, MakeElement(zero ? 1 : 0, element_bytes));
}

void Resize(Bytes& values, uint64_t count, uint8_t seed, uint32_t element_bytes) {
  const uint64_t before = values.size() / element_bytes;
  values.resize(count * element_bytes);
  if (count > before) SetRun(values, before, count - before, seed, element_bytes);
}

void EditValues(const PlanOp& op, Bytes& values, uint32_t element_bytes, uint64_t capacity) {
  const uint64_t count = values.size() / element_bytes;
  if (count == 0 || op.edit_kind() == Edit::kFresh) {
    Resize(values, 0, 0, element_bytes);
    Resize(values, 1 + op.length % capacity, op.value, element_bytes);
    return;
  }
  const uint64_t at = op.position % count;
  switch (op.edit_kind()) {
    case Edit::kSame:
    case Edit::kFresh:
      break;
    case Edit::kOne:
      SetElement(values, at, MakeElement(op.value, element_bytes));
      break;
    case Edit::kSpan:
      SetRun(values, at, std::min<uint64_t>(1 + op.span, count - at), op.value, element_bytes);
      break;
    case Edit::kBothEnds:
      SetElement(values, 0, MakeElement(op.value, element_bytes));
      SetElement(values, count - 1, MakeElement(op.value, element_bytes));
      break;
    case Edit::kFlipZero:
      FlipZero(values, at, element_bytes);
      break;
    case Edit::kNan:
      SetElement(values, at, MakeElement(2 + op.value % 2, element_bytes));
      break;
    case Edit::kShrink:
      Resize(values, count - std::min<uint64_t>(count, 1 + op.span % 4), 0, element_bytes);
      break;
    case Edit::kGrow:
      Resize(values, std::min<uint64_t>(capacity, count + 1 + op.span % 4), op.value,
             element_bytes);
      break;
  }
}

// Often the element that the last values ended with, so that a shorter call with padding may equal
// a longer one without.
Bytes PadOf(const PlanOp& op, const Bytes& last, uint32_t element_bytes) {
  if (op.pad % 3 == 0) return {};
  if (op.pad % 2 == 1 && last.size() >= element_bytes) {
    return Bytes(last.end() - element_bytes, last.end());
  }
  return MakeElement(static_cast<uint8_t>(op.pad / 2), element_bytes);
}

}  // namespace

Bytes CallValues::Image(uint64_t capacity) const {
  Bytes image = values;
  while (!pad.empty() && image.size() < capacity * element_bytes) {
    image.insert(image.end(), pad.begin(), pad.end());
  }
  return image;
}

internal::HostImage CallValues::View() const noexcept {
  return {.values = reinterpret_cast<const std::byte*>(values.data()),
          .count = count(),
          .element_bytes = element_bytes,
          .pad = pad.empty() ? nullptr : reinterpret_cast<const std::byte*>(pad.data())};
}

CallValues NextValues(const PlanOp& op, const Bytes& last, uint32_t element_bytes,
                      uint64_t capacity) {
  CallValues next{.element_bytes = element_bytes, .values = last};
  EditValues(op, next.values, element_bytes, capacity);
  next.pad = PadOf(op, last, element_bytes);
  return next;
}

}  // namespace h2d::testing
