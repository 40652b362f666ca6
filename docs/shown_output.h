// Outputs that a document shows, against what the program prints today.
#ifndef H2D_DOCS_SHOWN_OUTPUT_H_
#define H2D_DOCS_SHOWN_OUTPUT_H_

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace h2d::testing {

// The block without a language (between lines of three backticks) that holds `words`, or "".
inline std::string BlockWith(const std::string& document, std::string_view words) {
  std::ifstream file(document);
  std::string block;
  bool inside = false;
  bool plain = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("```", 0) == 0) {
      if (inside && plain && block.find(words) != std::string::npos) return block;
      inside = !inside;
      plain = line == "```";
      block.clear();
    } else if (inside) {
      block += line + "\n";
    }
  }
  return "";
}

// Expects the lines of the block with `words` in `output`, in their order; where the document says
// "..." something may have been left out.
inline void ExpectShows(const std::string& document, std::string_view words,
                        const std::string& output) {
  const std::string block = BlockWith(document, words);
  ASSERT_NE(block, "") << document << " has no block with: " << words;
  constexpr std::string_view kLeftOut = "...";
  size_t at = 0;
  std::istringstream lines(block);
  for (std::string line; std::getline(lines, line);) {
    for (size_t begin = 0; begin <= line.size();) {
      const size_t end = line.find(kLeftOut, begin);
      const std::string piece = line.substr(begin, end - begin);
      const size_t found = output.find(piece, at);
      ASSERT_NE(found, std::string::npos) << document << " shows\n"
                                          << piece << "\nwhich is not, or not there, in\n"
                                          << output;
      at = found + piece.size();
      if (end == std::string::npos) break;
      begin = end + kLeftOut.size();
    }
  }
}

}  // namespace h2d::testing

#endif  // H2D_DOCS_SHOWN_OUTPUT_H_
