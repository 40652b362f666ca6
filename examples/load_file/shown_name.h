// Names from files, as they are shown.
#ifndef H2D_EXAMPLES_LOAD_FILE_SHOWN_NAME_H_
#define H2D_EXAMPLES_LOAD_FILE_SHOWN_NAME_H_

#include <string>

namespace h2d::load_file {

// `name` in quotes, in ASCII: line breaks and what else would move a terminal are escaped as in
// JSON, and so are characters beyond ASCII; bytes that are no UTF-8 become U+FFFD.
std::string ShownName(const std::string& name);

}  // namespace h2d::load_file

#endif  // H2D_EXAMPLES_LOAD_FILE_SHOWN_NAME_H_
