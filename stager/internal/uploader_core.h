// An uploader: which way each source takes.
#ifndef H2D_STAGER_INTERNAL_UPLOADER_CORE_H_
#define H2D_STAGER_INTERNAL_UPLOADER_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>

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
  UploaderCore(std::shared_ptr<Device> device, const UploaderOptions& options,
               std::unique_ptr<PinnedStager> ring);

  // The stager that an uploader of these options makes its chunks of.
  static StagerOptions RingOptions(const UploaderOptions& options) noexcept;

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
  Expected<void> SendSmall(const UploadSource& source, DevicePtr to, const Stream& stream,
                           StreamId id, const UploadControl& control);
  Expected<void> CopyThroughSlot(const UploadSource& source, DevicePtr to, const Stream& stream,
                                 bool* touched);
  Expected<void> SendDirectly(UploadSource& source, DevicePtr to, const Stream& stream, StreamId id,
                              const std::shared_ptr<TicketState>& ticket);

  const std::shared_ptr<Device> device_;
  const UploaderOptions options_;
  const ProcessEpoch process_ = CurrentProcess();
  const std::shared_ptr<MirrorRegistry> mirrors_;
  const std::unique_ptr<PinnedStager> ring_;
  ReleaseCore sources_;
  ChunkShares shares_;
  // Of the slots for small sources; none where the limits leave no memory beside the chunks: then
  // they share those.
  std::optional<ChunkShares> small_shares_;
  FillPool pool_;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_UPLOADER_CORE_H_
