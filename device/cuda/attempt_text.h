// What a call was about, for the messages of its errors: "Copying 64 bytes from 0x... to ...".
#ifndef H2D_DEVICE_CUDA_ATTEMPT_TEXT_H_
#define H2D_DEVICE_CUDA_ATTEMPT_TEXT_H_

#include <cstddef>
#include <span>
#include <string>

#include "h2d/device/device.h"
#include "h2d/device/device_ptr.h"
#include "h2d/device/stream.h"

namespace h2d::internal {

std::string AddressText(const void* address);

// "stream 13 of CUDA device 0", or which of the default streams.
std::string StreamText(const Stream& stream, int ordinal);

std::string CopyText(DevicePtr destination, std::span<const std::byte> source, const Stream& stream,
                     int ordinal);

std::string BatchText(std::span<const CopyEntry> entries, const Stream& stream, int ordinal);

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_ATTEMPT_TEXT_H_
