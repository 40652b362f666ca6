#include "h2d/device/conformance/capture_fixture.h"

#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace h2d::conformance {
namespace {

constexpr uint64_t kWrittenBytes = 64;
constexpr std::byte kWritten{0x5a};

}  // namespace

void CaptureFixture::SurvivesCaptures(const std::function<void()>& work) {
  for (const CaptureMode mode : kCaptureModes) {
    SCOPED_TRACE(std::string("capture mode ") + std::string(ToString(mode)));
    SurvivesOwnCapture(mode, work);
    SurvivesAnothersCapture(mode, work);
  }
}

void CaptureFixture::SurvivesOwnCapture(CaptureMode mode, const std::function<void()>& work) {
  SCOPED_TRACE("captured by the calling thread");
  const Stream stream = NewStream();
  const DevicePtr written = NewMemory(kWrittenBytes);
  Must(harness().BeginCapture(stream, mode));
  Expected<void> filled = harness().Fill(written, kWritten, kWrittenBytes, stream);
  try {
    work();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  Expected<std::unique_ptr<Graph>> graph = harness().EndCapture(stream);
  Must(std::move(filled));
  CheckGraph(std::move(graph), written);
}

void CaptureFixture::SurvivesAnothersCapture(CaptureMode mode, const std::function<void()>& work) {
  SCOPED_TRACE("captured by another thread");
  const Stream stream = NewStream();
  const DevicePtr written = NewMemory(kWrittenBytes);
  std::promise<Expected<void>> begun;
  std::promise<void> worked;
  Expected<std::unique_ptr<Graph>> graph = FailedPrecondition("the capture did not end");
  std::thread capturer([&] {
    Expected<void> ok = harness().BeginCapture(stream, mode);
    if (ok) ok = harness().Fill(written, kWritten, kWrittenBytes, stream);
    const bool capturing = ok.has_value();
    begun.set_value(std::move(ok));
    worked.get_future().wait();
    if (capturing) graph = harness().EndCapture(stream);
  });
  const Expected<void> ok = begun.get_future().get();
  try {
    if (ok) work();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  worked.set_value();
  capturer.join();
  Must(ok);
  CheckGraph(std::move(graph), written);
}

void CaptureFixture::CheckGraph(Expected<std::unique_ptr<Graph>> graph, DevicePtr written) {
  const std::unique_ptr<Graph> captured = Must(std::move(graph));
  const Stream stream = NewStream();
  Must(harness().Replay(*captured, stream));
  EXPECT_TRUE(ReadBack(written, kWrittenBytes, stream) ==
              std::vector<std::byte>(kWrittenBytes, kWritten));
}

}  // namespace h2d::conformance
