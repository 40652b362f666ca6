#include "h2d/device/fake/view/text_wrap.h"

namespace h2d::fake_internal {

std::vector<std::string_view> WrapText(std::string_view text, size_t width, size_t later_width) {
  std::vector<std::string_view> lines;
  while (text.size() > width) {
    // The last blank that leaves a line of `width`; a word longer than that is cut.
    const size_t blank = text.rfind(' ', width);
    const bool cut = blank == std::string_view::npos || blank == 0;
    lines.push_back(text.substr(0, cut ? width : blank));
    text.remove_prefix(cut ? width : blank + 1);
    width = later_width;
  }
  lines.push_back(text);
  return lines;
}

}  // namespace h2d::fake_internal
