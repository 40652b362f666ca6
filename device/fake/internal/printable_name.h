// Names that users give, as they are shown.
#ifndef H2D_DEVICE_FAKE_INTERNAL_PRINTABLE_NAME_H_
#define H2D_DEVICE_FAKE_INTERNAL_PRINTABLE_NAME_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace h2d::fake_internal {

// How many bytes the character takes that `text` begins with, in UTF-8; 0 where it begins with
// none: an empty text, a byte out of place, an overlong form, a surrogate, a character cut off.
size_t Utf8Length(std::string_view text) noexcept;

// `name` for one line of text and for JSON: a control character becomes a blank, since a new line
// would break the columns of a time line, and a byte that is no UTF-8 becomes '?', since a strict
// parser refuses the whole document.
std::string PrintableName(std::string_view name);

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_PRINTABLE_NAME_H_
