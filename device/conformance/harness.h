// What the conformance suite needs of a backend besides `Device` itself.
//
// A `Device` has no device memory, no new streams and no captures: those are the engine's. The
// suite needs them to look at a device from outside, so each backend brings a harness. Whatever a
// backend cannot do answers an error; the tests that need it fail, and the backend lists them as
// excluded, with the reason (exclusions.h).
#ifndef H2D_DEVICE_CONFORMANCE_HARNESS_H_
#define H2D_DEVICE_CONFORMANCE_HARNESS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "h2d/device/device.h"

namespace h2d::conformance {

enum class CaptureMode : uint8_t { kGlobal, kThreadLocal, kRelaxed };
enum class StreamFlavor : uint8_t { kNonBlocking, kBlocking };

// A graph that a capture ended with.
class Graph {
 public:
  virtual ~Graph() = default;
};

// One for each test. Destruction quiesces, then frees what the harness made.
//
// Thread-safety: a test may use different streams from different threads; it makes and destroys
// streams and memory from one at a time.
class Harness {
 public:
  virtual ~Harness() = default;

  virtual std::shared_ptr<Device> device() = 0;

  // --- Device memory ---
  // Zeroed, at least 256-byte aligned, freed with the harness.
  virtual Expected<DevicePtr> AllocateDevice(uint64_t bytes) = 0;
  // The bytes, read in stream order; waits for them.
  virtual Expected<std::vector<std::byte>> ReadBack(DevicePtr ptr, uint64_t bytes,
                                                    const Stream& stream) = 0;
  // Work of somebody else's: fills the bytes, in stream order, on the device. It may be captured.
  virtual Expected<void> Fill(DevicePtr ptr, std::byte value, uint64_t bytes,
                              const Stream& stream) = 0;

  // --- Streams ---
  virtual Expected<Stream> NewStream(StreamFlavor flavor) = 0;
  // Returns at once, also while work is queued.
  virtual Expected<void> DestroyStream(const Stream& stream) = 0;
  virtual Stream LegacyStream() = 0;
  virtual Stream PerThreadStream() = 0;
  // Nothing that is enqueued on `stream` from now on runs until `Release`. The stream is idle at
  // the call. May be called again after a release.
  virtual Expected<void> Hold(const Stream& stream) = 0;
  virtual Expected<void> Release(const Stream& stream) = 0;
  // The host waits until everything on `stream` is complete.
  virtual Expected<void> Synchronize(const Stream& stream) = 0;

  // Releases every held stream and waits for everything: no copy is in flight any more.
  virtual void Quiesce() = 0;

  // --- Captures ---
  virtual Expected<void> BeginCapture(const Stream& stream, CaptureMode mode) = 0;
  // Does on `stream` what a capture does not survive.
  virtual Expected<void> InvalidateCapture(const Stream& stream) = 0;
  // An error when the capture was invalidated; it is over in any case.
  virtual Expected<std::unique_ptr<Graph>> EndCapture(const Stream& stream) = 0;
  virtual Expected<void> Replay(Graph& graph, const Stream& stream) = 0;

  // --- A second device ---
  // Null when there is none: the tests that need one are skipped. Lives as long as this harness.
  virtual Harness* Second() { return nullptr; }

  // --- Verdict ---
  // The test is about to break a rule of `Device` on purpose, to see what happens.
  virtual void ExpectMisuse() {}
  // What the backend itself saw go wrong in this test; empty when nothing did.
  virtual std::string Complaints() { return {}; }
};

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CONFORMANCE_HARNESS_H_
