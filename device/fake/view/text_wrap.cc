#include "h2d/device/fake/view/text_wrap.h"

namespace h2d::fake_internal {
namespace {

// At most `width` bytes of a word that is longer, and no part of a character of UTF-8.
size_t CutAt(std::string_view word, size_t width) {
  const auto inside = [&](size_t at) {
    return (static_cast<unsigned char>(word[at]) & 0xc0U) == 0x80U;
  };
  size_t cut = width;
  while (cut > 0 && inside(cut)) --cut;
  return cut == 0 ? width : cut;
}

}  // namespace

std::vector<std::string_view> WrapText(std::string_view text, size_t width, size_t later_width) {
  std::vector<std::string_view> lines;
  while (text.size() > width) {
    // The last blank that leaves a line of `width`; a word longer than that is cut.
    const size_t blank = text.rfind(' ', width);
    const bool cut = blank == std::string_view::npos || blank == 0;
    const size_t end = cut ? CutAt(text, width) : blank;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(cut ? end : end + 1);
    width = later_width;
  }
  lines.push_back(text);
  return lines;
}

}  // namespace h2d::fake_internal
