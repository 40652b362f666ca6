#include "h2d/device/cuda/driver_api.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <memory>
#include <string>

#include "h2d/device/cuda/cuda_error.h"
#include "h2d/device/cuda/driver_version.h"

namespace h2d::internal {
namespace {

static_assert(CUDART_VERSION >= 12080, "h2d's CUDA backend needs the toolkit 12.8 or newer");

Expected<void> CheckDriver() {
  int driver = 0;
  int runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) runtime = CUDART_VERSION;
  return CheckDriverVersion(driver, runtime);
}

Expected<void> CheckOrdinal(int ordinal) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) static_cast<void>(cudaGetLastError());  // leave none behind
  if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     "This machine has an NVIDIA driver and no GPU that this process may use.",
                     cudaErrorNoDevice);
  }
  if (result != cudaSuccess) {
    return CudaFailure(result, "Counting the CUDA devices");
  }
  if (ordinal < 0 || ordinal >= count) {
    return InvalidArgument("There is no CUDA device " + std::to_string(ordinal) +
                           ": this process sees " + std::to_string(count) +
                           ", and they are numbered from 0.");
  }
  return {};
}

template <class Function>
bool Find(const char* name, unsigned version, Function& function) noexcept {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableLegacyStream, &found);
  if (result != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  if (found != cudaDriverEntryPointSuccess) return false;
  function = reinterpret_cast<Function>(address);
  return true;
}

Expected<std::unique_ptr<DriverApi>> FindAll() {
  auto api = std::make_unique<DriverApi>();
#define H2D_FIND(name, version)                                                          \
  if (!Find("cu" #name, version, api->name)) {                                           \
    return FailedPrecondition("The NVIDIA driver has no cu" #name " of CUDA " +          \
                              CudaVersionText(version) + ", which this program needs."); \
  }
  H2D_DRIVER_CALLS(H2D_FIND)
#undef H2D_FIND
#if CUDA_VERSION >= 13000
  if (!Find("cuMemcpyBatchAsync", 13000, api->MemcpyBatchAsync)) api->MemcpyBatchAsync = nullptr;
#endif
  return api;
}

// The runtime may unload the driver's library at exit; handles with static storage duration call
// it later still and must find it in place, answering that it has shut down.
void KeepDriverLoaded() noexcept {
  static_cast<void>(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NODELETE));
}

}  // namespace

Expected<const DriverApi*> LoadDriverApi(int ordinal) {
  if (Expected<void> ok = CheckDriver(); !ok) return ErrorOf(ok);
  if (Expected<void> ok = CheckOrdinal(ordinal); !ok) return ErrorOf(ok);
  // Leaked: handles with static storage duration use it until the process is gone.
  static const auto* const found = [] {
    KeepDriverLoaded();
    return new Expected<std::unique_ptr<DriverApi>>(FindAll());
  }();
  if (!*found) return Unexpected(found->error());
  return (*found)->get();
}

}  // namespace h2d::internal
