#include "h2d/device/fake/internal/printable_name.h"

#include <cstddef>
#include <cstdint>

namespace h2d::fake_internal {
namespace {

// What a first byte announces: how many bytes, and the smallest character that needs as many.
struct Form {
  size_t bytes = 0;
  uint32_t value = 0;  // the first byte's part
  uint32_t least = 0;
};

constexpr Form FormOf(unsigned char first) {
  if (first < 0x80) return {1, first, 0};
  if (first >= 0xc0 && first < 0xe0) return {2, first & 0x1fU, 0x80};
  if (first >= 0xe0 && first < 0xf0) return {3, first & 0x0fU, 0x800};
  if (first >= 0xf0 && first < 0xf8) return {4, first & 0x07U, 0x10000};
  return {};
}

// How many bytes the character takes that `text` begins with; 0 where it begins with none: a byte
// out of place, an overlong form, a surrogate, a character cut off.
size_t Utf8Length(std::string_view text) {
  const Form form = FormOf(static_cast<unsigned char>(text[0]));
  if (form.bytes == 0 || text.size() < form.bytes) return 0;
  uint32_t value = form.value;
  for (size_t i = 1; i < form.bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0U) != 0x80U) return 0;
    value = value << 6 | (byte & 0x3fU);
  }
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  return value < form.least || value > 0x10ffff || surrogate ? 0 : form.bytes;
}

}  // namespace

std::string PrintableName(std::string_view name) {
  std::string shown;
  while (!name.empty()) {
    const size_t length = Utf8Length(name);
    const auto first = static_cast<unsigned char>(name[0]);
    if (length == 0) {
      shown += '?';
    } else if (first < 0x20 || first == 0x7f) {
      shown += ' ';
    } else {
      shown += name.substr(0, length);
    }
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return shown;
}

}  // namespace h2d::fake_internal
