// What a caller may see and say while an upload runs.
#ifndef H2D_STAGER_UPLOAD_CONTROL_H_
#define H2D_STAGER_UPLOAD_CONTROL_H_

#include <cstdint>
#include <functional>
#include <stop_token>

namespace h2d {

// How far an upload is. Bytes that are enqueued were read from the source; whether they have
// arrived is the stream's to tell.
struct UploadProgress {
  uint64_t bytes_enqueued = 0;
  uint64_t bytes_total = 0;
};

// What a caller may want of a long upload. Both are optional.
struct UploadControl {
  // Asked between chunks, and heard while the upload waits for one, for memory, or at the limit of
  // sources that the device reads: a stop ends the upload with `kUnavailable`.
  std::stop_token cancel{};
  // Called after each chunk, on the calling thread, outside every lock; not for a source of 0
  // bytes. It may request the stop and start other uploads, also on the same stream, where their
  // copies then lie between two of this one. It must not throw.
  std::function<void(const UploadProgress&)> progress{};
};

}  // namespace h2d

#endif  // H2D_STAGER_UPLOAD_CONTROL_H_
