// The CUDA runtime's error numbers that the simulated driver answers, so that code which looks at
// `Error::device_code` meets the same numbers as in production.
#ifndef H2D_DEVICE_FAKE_INTERNAL_CUDA_ERRORS_H_
#define H2D_DEVICE_FAKE_INTERNAL_CUDA_ERRORS_H_

namespace h2d::fake_internal::cuda_errors {

inline constexpr int kInvalidValue = 1;
inline constexpr int kMemoryAllocation = 2;
inline constexpr int kInvalidResourceHandle = 400;
inline constexpr int kStreamCaptureUnsupported = 900;
inline constexpr int kStreamCaptureInvalidated = 901;
inline constexpr int kStreamCaptureUnmatched = 903;
inline constexpr int kStreamCaptureUnjoined = 904;
inline constexpr int kStreamCaptureIsolation = 905;
inline constexpr int kStreamCaptureImplicit = 906;
inline constexpr int kCapturedEvent = 907;
inline constexpr int kStreamCaptureWrongThread = 908;

}  // namespace h2d::fake_internal::cuda_errors

#endif  // H2D_DEVICE_FAKE_INTERNAL_CUDA_ERRORS_H_
