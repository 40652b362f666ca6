// Text in lines of a given width.
#ifndef H2D_DEVICE_FAKE_VIEW_TEXT_WRAP_H_
#define H2D_DEVICE_FAKE_VIEW_TEXT_WRAP_H_

#include <cstddef>
#include <string_view>
#include <vector>

namespace h2d::fake_internal {

// The words of `text` in lines of at most `width` bytes (not 0), the lines after the first at most
// `later_width`. A longer word is cut between two characters of UTF-8, or inside one that is longer
// than a line. At least one line, which may be empty.
std::vector<std::string_view> WrapText(std::string_view text, size_t width, size_t later_width);

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_VIEW_TEXT_WRAP_H_
