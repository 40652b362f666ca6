#include "h2d/stager/uploader.h"

#include <utility>

#include "h2d/stager/internal/uploader_core.h"

namespace h2d {

Uploader::Uploader(std::unique_ptr<internal::UploaderCore> core) noexcept
    : core_(std::move(core)) {}

// A forked child has no threads to join, and locks that may be held for ever.
Uploader::~Uploader() {
  if (!core_->in_own_process()) static_cast<void>(core_.release());
}

Expected<std::unique_ptr<Uploader>> Uploader::Create(std::shared_ptr<Device> device,
                                                     const UploaderOptions& options) {
  if (device == nullptr) return InvalidArgument("The device of an uploader is null.");
  if (auto valid = Validate(options); !valid) return ErrorOf(valid);
  auto core = internal::UploaderCore::Create(std::move(device), options);
  if (!core) return ErrorOf(core);
  return std::unique_ptr<Uploader>(new Uploader(std::move(*core)));
}

Expected<UploadTicket> Uploader::Upload(const Destination& destination, UploadSource source,
                                        const Stream& stream, const UploadControl& control) {
  return core_->Upload(destination, source, stream, control);
}

Expected<bool> Uploader::SourceReusable(const UploadTicket& ticket) {
  return core_->SourceReusable(ticket);
}

const UploaderOptions& Uploader::options() const noexcept { return core_->options(); }

UploaderStats Uploader::stats() const noexcept { return core_->Stats(); }

}  // namespace h2d
