#include "h2d/examples/load_file/progress_bar.h"

#include <unistd.h>

namespace h2d::load_file {

std::string BarText(uint64_t bytes_done, uint64_t bytes_total) {
  constexpr int kWidth = 40;
  const double part =
      bytes_total == 0 ? 1.0 : static_cast<double>(bytes_done) / static_cast<double>(bytes_total);
  const int full = static_cast<int>(part * kWidth);
  std::string text = "[" + std::string(static_cast<size_t>(full), '#') +
                     std::string(static_cast<size_t>(kWidth - full), '.') + "]";
  char numbers[64];
  std::snprintf(numbers, sizeof(numbers), " %3d %%  %.1f of %.1f GB", static_cast<int>(part * 100),
                static_cast<double>(bytes_done) / 1e9, static_cast<double>(bytes_total) / 1e9);
  return text + numbers;
}

ProgressBar::ProgressBar(uint64_t bytes_total)
    : ProgressBar(bytes_total, stderr, isatty(STDERR_FILENO) == 1) {}

ProgressBar::ProgressBar(uint64_t bytes_total, std::FILE* to, bool is_terminal)
    : total_(bytes_total), to_(to), is_terminal_(is_terminal) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fprintf(to_, "\r%s\n", BarText(done_, total_).c_str());
}

void ProgressBar::Show(uint64_t bytes_done) {
  if (!is_terminal_) return;
  done_ = bytes_done;
  const auto now = std::chrono::steady_clock::now();
  if (shown_ && now < next_) return;
  shown_ = true;
  next_ = now + std::chrono::milliseconds(100);
  std::fprintf(to_, "\r%s", BarText(bytes_done, total_).c_str());
}

}  // namespace h2d::load_file
