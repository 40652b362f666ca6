// Brings sources of any size and kind to the device, at the speed of the link: carries out what
// `Staging::Of` decides.
//
//   auto uploader = h2d::Uploader::Create(device);
//   auto ticket = (*uploader)->Upload(h2d::Destination::Of(d_weights, count),
//                                     h2d::UploadSource::File(descriptor, offset, bytes), stream);
//
// Pageable memory, mappings and files pass through pinned chunks that worker threads fill: page
// faults happen on the host, never under the copy. Pinned memory goes as it is. All copies go on
// the caller's own stream, enqueued by the calling thread in the order of the source, so that what
// is enqueued afterwards is ordered after all of it, also when an upload ends early.
#ifndef H2D_STAGER_UPLOADER_H_
#define H2D_STAGER_UPLOADER_H_

#include <cstdint>
#include <memory>

#include "h2d/device/device.h"
#include "h2d/stager/upload_control.h"
#include "h2d/stager/upload_source.h"
#include "h2d/stager/upload_ticket.h"
#include "h2d/stager/uploader_options.h"
#include "h2d/stager/uploader_stats.h"

namespace h2d {

namespace internal {
class UploaderCore;
}  // namespace internal

// Thread-safety: any number of threads may upload at once. They share the threads and the chunks:
// a stream that stands still keeps a part of the chunks and leaves the rest to the others. It may
// keep all slots for small sources; then those of others take chunks. No call uses another stream
// than its own.
//
// Blocking. `Upload` returns when the source was read, which needs chunks, which come back when the
// device has read them. REQUIRES: the stream's progress does not depend on the calling thread.
//
// Streams. Once `Upload` has returned a ticket, the stream may be destroyed or captured. REQUIRES:
// after an upload of a source that the device reads directly failed with an incomplete destination,
// its stream exists, and is not captured, until a later such upload on it succeeded or the uploader
// has ended.
//
// Lifetime. An uploader holds its device alive. Its destructor waits for its own copies and for
// nothing else (I9). REQUIRES: no call of it is in progress.
class Uploader {
 public:
  // Errors: `kInvalidArgument` for a null device and for options out of range (the message names
  // the field and its value); the device's.
  [[nodiscard]] static Expected<std::unique_ptr<Uploader>> Create(
      std::shared_ptr<Device> device, const UploaderOptions& options = {});

  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;
  ~Uploader();

  // Copies all of `source` to the start of `destination` on `stream`; the rest of the destination
  // stays as it is. Returns when the source was read or, where the device reads it directly, when
  // its copy is enqueued. A source of 0 bytes is a success without any call of the device.
  //
  // Errors. When the message says that the destination is incomplete, a part of the copies was
  // enqueued, or may have been; they are finished in stream order, and their chunks come back.
  // Without a ticket to ask, a source that the device reads directly (pinned memory, and pageable
  // memory that the policy sends so) stays valid and unchanged until the stream was synchronised;
  // an owner given with it is ended then or later. Otherwise nothing was enqueued.
  //   kInvalidArgument     a destination that is null, too small or of elements that the source
  //                        does not fill; device memory as the source, unless it was declared
  //                        pinned or the policy leaves the kind open; a closed descriptor, a
  //                        directory, a range beyond the file's end or beyond 63 bits
  //   kFailedPrecondition  the stream is being captured; a forked child; the file could not be read
  //                        (the message has the offset and the cause) or ended early
  //   kResourceExhausted   no chunk can become free
  //   kUnavailable         no chunk became free within `wait_timeout`; a requested stop
  //   kDevice              the device failed
  [[nodiscard]] Expected<UploadTicket> Upload(const Destination& destination, UploadSource source,
                                              const Stream& stream,
                                              const UploadControl& control = {});

  // Whether the source of `ticket` may be changed or freed: at once when it passed through chunks,
  // else when the device was seen to have read it. Never waits, and does not use the stream.
  // Errors: `kInvalidArgument` for a ticket that was moved from, and for one of another uploader as
  // long as that has not said yes; the device's.
  [[nodiscard]] Expected<bool> SourceReusable(const UploadTicket& ticket);

  const UploaderOptions& options() const noexcept;
  UploaderStats stats() const noexcept;

 private:
  explicit Uploader(std::unique_ptr<internal::UploaderCore> core) noexcept;

  std::unique_ptr<internal::UploaderCore> core_;
};

}  // namespace h2d

#endif  // H2D_STAGER_UPLOADER_H_
