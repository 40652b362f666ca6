// What is left of an upload that has returned.
#ifndef H2D_STAGER_UPLOAD_TICKET_H_
#define H2D_STAGER_UPLOAD_TICKET_H_

#include <memory>
#include <utility>

namespace h2d {

namespace internal {
struct TicketState;
}  // namespace internal

// Names one finished `Upload`. Copyable; may outlive its uploader.
class UploadTicket {
 public:
  // For the uploader.
  explicit UploadTicket(std::shared_ptr<internal::TicketState> state) noexcept
      : state_(std::move(state)) {}
  const std::shared_ptr<internal::TicketState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<internal::TicketState> state_;
};

}  // namespace h2d

#endif  // H2D_STAGER_UPLOAD_TICKET_H_
