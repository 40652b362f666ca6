// What everything is read from, all of one content.
#ifndef H2D_BENCH_CALIBRATE_SOURCES_H_
#define H2D_BENCH_CALIBRATE_SOURCES_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include "h2d/device/device.h"

namespace h2d::calibrate {

class Sources {
 public:
  // Errors: the device's; no temporary file can be made or mapped.
  static Expected<std::unique_ptr<Sources>> Make(Device& device, uint64_t bytes);
  ~Sources();
  Sources(const Sources&) = delete;
  Sources& operator=(const Sources&) = delete;

  std::span<const std::byte> pageable() const { return pageable_; }
  std::span<const std::byte> pinned() const { return pinned_.bytes().first(pageable_.size()); }
  std::span<const std::byte> mapped() const {
    return {static_cast<const std::byte*>(mapped_), pageable_.size()};
  }
  int descriptor() const { return fileno(file_); }

 private:
  Sources(PinnedBuffer pinned, uint64_t bytes);
  bool MakeFile();

  std::vector<std::byte> pageable_;
  PinnedBuffer pinned_;
  std::FILE* file_ = nullptr;
  void* mapped_;
};

}  // namespace h2d::calibrate

#endif  // H2D_BENCH_CALIBRATE_SOURCES_H_
