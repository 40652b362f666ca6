// What the documents show as code is code that is compiled and run: each C++ block names the file
// that it was taken from, and stands there word for word.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace {

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

// Expects each C++ block of the document to stand in a file, and that many blocks.
void ExpectQuotes(const std::string& document, size_t at_least) {
  const std::string text = ContentOf(document);
  const std::string fence = "```cpp\n";
  size_t blocks = 0;
  for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    const size_t begin = at + fence.size();
    const size_t end = text.find("```", begin);
    ASSERT_NE(end, std::string::npos);
    const std::string code = text.substr(begin, end - begin);
    // "<!-- path -->" stands in the line before the block.
    const size_t comment = text.rfind("<!-- ", at);
    ASSERT_NE(comment, std::string::npos) << code;
    const std::string path = text.substr(comment + 5, text.find(" -->", comment) - comment - 5);
    ASSERT_EQ(comment + 5 + path.size() + 5, at) << "no file is named before:\n" << code;
    EXPECT_NE(ContentOf(path).find(code), std::string::npos) << path << " has not:\n" << code;
    ++blocks;
    at = end;
  }
  EXPECT_GE(blocks, at_least) << document;
}

TEST(QuotesTest, EachCppBlockOfThePageOnTestingStandsInTheFileThatItNames) {
  ExpectQuotes("docs/testing_your_engine.md", 6);
}

TEST(QuotesTest, TheExamplesInTheReadmeAreProgramsOfTheTree) { ExpectQuotes("README.md", 2); }

}  // namespace
