// A bar that tells a person how far a load is.
#ifndef H2D_EXAMPLES_LOAD_FILE_PROGRESS_BAR_H_
#define H2D_EXAMPLES_LOAD_FILE_PROGRESS_BAR_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace h2d::load_file {

// The bar's text, without a line's end: "[#####.....]  50 %  1.0 of 2.0 GB".
std::string BarText(uint64_t bytes_done, uint64_t bytes_total);

// Writes to standard error, ten times a second at most, and only when that is a terminal. At its
// end it shows what was done by then: after an error, not the whole.
class ProgressBar {
 public:
  explicit ProgressBar(uint64_t bytes_total);
  // For tests: writes to `to` instead.
  ProgressBar(uint64_t bytes_total, std::FILE* to, bool is_terminal);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(uint64_t bytes_done);

 private:
  const uint64_t total_;
  std::FILE* const to_;
  const bool is_terminal_;
  bool shown_ = false;
  uint64_t done_ = 0;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace h2d::load_file

#endif  // H2D_EXAMPLES_LOAD_FILE_PROGRESS_BAR_H_
