#include "h2d/device/fake/internal/printable_name.h"

#include <gtest/gtest.h>

#include <string>

namespace h2d::fake_internal {
namespace {

TEST(PrintableName, LeavesCharactersOfEveryLengthAlone) {
  // 1 to 4 bytes, the first and the last character of each length.
  const std::string text =
      " ~\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
  EXPECT_EQ(PrintableName(text), text);
  EXPECT_EQ(PrintableName(""), "");
}

TEST(PrintableName, HasNoControlCharacter) {
  EXPECT_EQ(PrintableName(std::string("a\nb\tc\0d\x7f", 8)), "a b c d ");
}

TEST(PrintableName, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(PrintableName("a\x80z"), "a?z");             // a byte out of place
  EXPECT_EQ(PrintableName("\xc3"), "?");                 // cut off
  EXPECT_EQ(PrintableName("\xe2\x82z"), "??z");          // cut off by another character
  EXPECT_EQ(PrintableName("\xc0\xaf"), "??");            // '/', overlong
  EXPECT_EQ(PrintableName("\xe0\x9f\xbf"), "???");       // overlong
  EXPECT_EQ(PrintableName("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(PrintableName("\xf4\x90\x80\x80"), "????");  // beyond the last character
  EXPECT_EQ(PrintableName("\xf8\x88\x80\x80\x80"), "?????");
}

}  // namespace
}  // namespace h2d::fake_internal
