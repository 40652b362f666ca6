#include "h2d/examples/replay/progress.h"

#include <unistd.h>

#include <cstdio>

namespace h2d::replay {

Progress::Progress(std::string_view name, uint32_t requests)
    : name_(name),
      requests_(requests),
      is_terminal_(isatty(STDERR_FILENO) != 0),
      next_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::Show(uint32_t requests_done) {
  if (!is_terminal_ || std::chrono::steady_clock::now() < next_) return;
  next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  shown_ = true;
  std::fprintf(
      stderr, "\r\033[K%s: %u of %u requests done (%u %%)", name_.c_str(), requests_done, requests_,
      requests_ == 0 ? 100 : static_cast<unsigned>(uint64_t{100} * requests_done / requests_));
  std::fflush(stderr);
}

}  // namespace h2d::replay
