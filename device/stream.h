// A device's queue of work, as the library knows it.
#ifndef H2D_DEVICE_STREAM_H_
#define H2D_DEVICE_STREAM_H_

#include <cstddef>
#include <cstdint>

namespace h2d {

// Tells streams apart for the life of the process. A handle does not: a destroyed stream's handle
// is given to the next one, and the per-thread default stream is one handle that means another
// stream in each thread. Never 0 for a known stream.
using StreamId = uint64_t;

enum class StreamKind : uint8_t {
  kOrdinary,
  kLegacyDefault,     // the stream that blocking streams synchronise with
  kPerThreadDefault,  // the calling thread's own default stream
};

// A non-owning name of a stream: a value to copy freely. It comes from its backend (for CUDA,
// `CudaDevice::Wrap`), which resolves the identity of an ordinary stream once; that of the two
// default streams depends on the calling thread and is resolved per call by `Device::Inspect`.
// It cannot be made from 0 or nullptr, which would mean the legacy default stream by accident.
//
// The stream it names stays alive until the work that was enqueued through it has been enqueued;
// using a `Stream` whose stream was destroyed is an error that not every backend can detect.
class Stream {
 public:
  Stream(std::nullptr_t) = delete;
  Stream(int) = delete;

  // For backends only. `device_tag` says which device the stream belongs to, in that backend's own
  // numbering (`NextDeviceTag`); `id` is 0 for the two default streams.
  static Stream ForBackend(void* handle, StreamKind kind, StreamId id,
                           uint64_t device_tag) noexcept {
    return Stream(handle, kind, id, device_tag);
  }

  void* handle() const noexcept { return handle_; }
  StreamKind kind() const noexcept { return kind_; }
  StreamId id() const noexcept { return id_; }
  uint64_t device_tag() const noexcept { return device_tag_; }

 private:
  Stream(void* handle, StreamKind kind, StreamId id, uint64_t device_tag) noexcept
      : handle_(handle), id_(id), device_tag_(device_tag), kind_(kind) {}

  void* handle_;
  StreamId id_;
  uint64_t device_tag_;
  StreamKind kind_;
};

// What a device knows of a stream at the moment of the question.
struct StreamStatus {
  // The stream is being captured into a graph (or its capture was invalidated and not yet ended):
  // work enqueued on it would be recorded, not run.
  bool capturing = false;
  // The stream's identity for the calling thread; 0 while `capturing`, because asking for the
  // identity of a capturing stream would invalidate its capture.
  StreamId id = 0;
};

// A number that no other device of this process has, for backends that simulate devices.
uint64_t NextDeviceTag() noexcept;

}  // namespace h2d

#endif  // H2D_DEVICE_STREAM_H_
