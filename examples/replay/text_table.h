// Columns of text for a terminal.
#ifndef H2D_EXAMPLES_REPLAY_TEXT_TABLE_H_
#define H2D_EXAMPLES_REPLAY_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace h2d::replay {

// The first column stands left, the others right.
class TextTable {
 public:
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "36,099".
std::string WithCommas(uint64_t number);

// "5.63 GB"; decimal units.
std::string BytesText(uint64_t bytes);

// `part` of `whole` as "12.3 %"; never "0.0 %" unless `part` is 0, nor "100.0 %" unless it is all.
std::string PercentText(uint64_t part, uint64_t whole);

// "1.7 us".
std::string DurationText(uint64_t nanoseconds);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_TEXT_TABLE_H_
