// What an engine's thread does on a GPU, by these targets. Skipped without a GPU.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/cuda/driver_api.h"
#include "h2d/device/cuda/engine/cuda_graph.h"
#include "h2d/device/cuda/engine/cuda_kernel.h"
#include "h2d/device/cuda/engine/cuda_memory.h"
#include "h2d/device/cuda/engine/cuda_stream.h"

namespace h2d {
namespace {

constexpr uint64_t kBytes = 1000;

class CudaEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::Create(0);
    if (!device) GTEST_SKIP() << device.error().message;
    device_ = *std::move(device);
    stream_.emplace(Must(CudaStream::Create(*device_)));
    memory_.emplace(Must(CudaMemory::Allocate(*device_, kBytes)));
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }

  template <class T>
  static T Must(Expected<T> answer) {
    EXPECT_TRUE(answer.has_value()) << answer.error().ToString();
    if constexpr (!std::is_void_v<T>) return *std::move(answer);
  }

  void Fill(std::byte value) {
    Must(FillAsync(*device_, memory_->ptr(), value, kBytes, stream_->get()));
  }
  void ExpectAll(std::byte value) {
    std::vector<std::byte> read(kBytes);
    Must(CopyToHostAsync(*device_, read, memory_->ptr(), stream_->get()));
    Must(Synchronize(*device_, stream_->get()));
    EXPECT_EQ(std::ranges::count(read, value), std::ssize(read));
  }

  std::shared_ptr<CudaDevice> device_;
  std::optional<CudaStream> stream_;
  std::optional<CudaMemory> memory_;
};

TEST_F(CudaEngineTest, WhatIsWrittenIsReadBack) {
  Fill(std::byte{3});
  ExpectAll(std::byte{3});
  const std::vector<std::byte> values(kBytes, std::byte{4});
  Must(device_->CopyAsync(memory_->ptr(), values, stream_->get()));
  ExpectAll(std::byte{4});
}

TEST_F(CudaEngineTest, AThreadWithoutADeviceHasNoneAfterwards) {
  std::thread([&] {
    Fill(std::byte{5});
    ExpectAll(std::byte{5});
    const CudaStream stream = Must(CudaStream::Create(*device_, CudaStreamKind::kBlocking));
    const CudaMemory memory = Must(CudaMemory::Allocate(*device_, 64));
    CUcontext current = nullptr;
    EXPECT_EQ(Must(internal::LoadDriverApi(0))->CtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, nullptr);
  }).join();
}

TEST_F(CudaEngineTest, ACaptureIsRecordedAndReplayed) {
  Fill(std::byte{1});
  Must(BeginCapture(*device_, stream_->get(), CudaCaptureMode::kGlobal));
  Fill(std::byte{2});
  // None of these hurts it.
  { const CudaStream other = Must(CudaStream::Create(*device_)); }
  { const CudaMemory other = Must(CudaMemory::Allocate(*device_, 64)); }
  const CudaGraph graph = Must(CudaGraph::EndCapture(*device_, stream_->get()));
  EXPECT_EQ(Must(graph.NodeCount()), 1U);
  ExpectAll(std::byte{1});
  const CudaExecutableGraph executable = Must(graph.Instantiate());
  Must(executable.Launch(stream_->get()));
  ExpectAll(std::byte{2});
}

TEST_F(CudaEngineTest, AnInvalidatedCaptureEndsWithAnErrorThatSaysSo) {
  Must(BeginCapture(*device_, stream_->get(), CudaCaptureMode::kThreadLocal));
  EXPECT_FALSE(Synchronize(*device_, stream_->get()).has_value());
  const Expected<CudaGraph> graph = CudaGraph::EndCapture(*device_, stream_->get());
  ASSERT_FALSE(graph.has_value());
  EXPECT_NE(graph.error().message.find("cudaErrorStreamCaptureInvalidated"), std::string::npos)
      << graph.error().message;
  Fill(std::byte{7});
  ExpectAll(std::byte{7});
}

constexpr char kSetAll[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry set_all(.param .u64 bytes, .param .u32 value)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [bytes];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %tid.x;
  cvt.u64.u32 %rd2, %r2;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u8 [%rd3], %r1;
  ret;
}
)";

TEST_F(CudaEngineTest, AKernelOfTextRunsWithItsArguments) {
  const CudaKernel kernel = Must(CudaKernel::Load(*device_, kSetAll, "set_all"));
  uint64_t address = memory_->ptr().address();
  uint32_t value = 9;
  std::array<void*, 2> arguments = {&address, &value};
  Must(kernel.Launch(stream_->get(), 1, kBytes, arguments));
  ExpectAll(std::byte{9});
  EXPECT_FALSE(CudaKernel::Load(*device_, kSetAll, "set_none").has_value());
}

TEST_F(CudaEngineTest, WhatIsOwnedMayBeMovedAndOutliveItsDevice) {
  CudaMemory moved = *std::move(memory_);
  EXPECT_EQ(moved.bytes(), kBytes);
  CudaStream stream = Must(CudaStream::Create(*device_));
  stream = *std::move(stream_);
  device_.reset();
}

TEST_F(CudaEngineTest, AnAllocationOfNoBytesIsRefused) {
  EXPECT_FALSE(CudaMemory::Allocate(*device_, 0).has_value());
  EXPECT_FALSE(CudaMemory::Allocate(*device_, uint64_t{1} << 60).has_value());
}

}  // namespace
}  // namespace h2d
