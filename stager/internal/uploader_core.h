// An uploader: which way each source takes.
#ifndef H2D_STAGER_INTERNAL_UPLOADER_CORE_H_
#define H2D_STAGER_INTERNAL_UPLOADER_CORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>

#include "h2d/device/device.h"
#include "h2d/device/process.h"
#include "h2d/device/sync.h"
#include "h2d/stager/internal/chunk_shares.h"
#include "h2d/stager/internal/chunked_upload.h"
#include "h2d/stager/internal/fill_pool.h"
#include "h2d/stager/internal/mirror_registry.h"
#include "h2d/stager/internal/release_core.h"
#include "h2d/stager/pinned_stager.h"
#include "h2d/stager/upload_control.h"
#include "h2d/stager/upload_source.h"
#include "h2d/stager/upload_ticket.h"
#include "h2d/stager/uploader_options.h"
#include "h2d/stager/uploader_stats.h"

namespace h2d::internal {

// What a ticket names. Shared with the release of the source.
struct TicketState {
  explicit TicketState(const void* by) noexcept : uploader(by) {}
  const void* const uploader;
  Atomic<uint32_t> reusable{0};
};

class UploaderCore {
 public:
  // Of options that are valid. Errors: the device's.
  static Expected<std::unique_ptr<UploaderCore>> Create(std::shared_ptr<Device> device,
                                                        const UploaderOptions& options);
  UploaderCore(std::shared_ptr<Device> device, const UploaderOptions& options,
               std::unique_ptr<PinnedStager> ring, std::unique_ptr<PinnedStager> small_ring);

  Expected<UploadTicket> Upload(const Destination& destination, UploadSource& source,
                                const Stream& stream, const UploadControl& control);
  Expected<bool> SourceReusable(const UploadTicket& ticket);
  UploaderStats Stats() const noexcept;
  const UploaderOptions& options() const noexcept { return options_; }
  bool in_own_process() const noexcept { return process_ == CurrentProcess(); }

 private:
  Expected<MemoryKind> KindOf(const UploadSource& source);
  Expected<void> SendThroughPinned(const SourceReader& reader, const UploadSource& source,
                                   DevicePtr to, const Stream& stream, StreamId id,
                                   const UploadControl& control);
  Expected<bool> TrySendSmall(std::span<const std::byte> source, DevicePtr to, const Stream& stream,
                              bool* touched);
  Expected<UploadTicket> SendDirectly(UploadSource& source, DevicePtr to, const Stream& stream,
                                      StreamId id, const std::stop_token& cancel);

  const std::shared_ptr<Device> device_;
  const UploaderOptions options_;
  const ProcessEpoch process_ = CurrentProcess();
  const std::shared_ptr<MirrorRegistry> mirrors_;
  const std::unique_ptr<PinnedStager> ring_;  // of chunks
  // Null where the limits leave no memory beside the chunks: then small sources take those.
  const std::unique_ptr<PinnedStager> small_ring_;
  ChunkShares shares_;
  FillPool pool_;
  // Of all uploads whose sources were read when they returned.
  const std::shared_ptr<TicketState> read_;
  // Ends first, while all else is there: the owners of its sources may call the uploader.
  ReleaseCore sources_;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_UPLOADER_CORE_H_
