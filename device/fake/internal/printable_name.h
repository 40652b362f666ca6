// Names that users give, as they are shown.
#ifndef H2D_DEVICE_FAKE_INTERNAL_PRINTABLE_NAME_H_
#define H2D_DEVICE_FAKE_INTERNAL_PRINTABLE_NAME_H_

#include <string>
#include <string_view>

namespace h2d::fake_internal {

// `name` for one line of text and for JSON: a control character becomes a blank, since a new line
// would break the columns of a time line, and a byte that is no UTF-8 becomes '?', since a strict
// parser refuses the whole document.
std::string PrintableName(std::string_view name);

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_PRINTABLE_NAME_H_
