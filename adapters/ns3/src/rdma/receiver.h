// The receiving side of a queue pair.
#pragma once

#include "intervals.h"
#include "packet.h"
#include "rdma_settings.h"
#include "state.h"

#include <cstdint>
#include <deque>
#include <functional>

namespace cosim {

class Port;

/// Answers every packet of data, and tells of each message whose last missing byte came.
///
/// Go-back-N: what comes after a gap is thrown away, and one NACK names the gap. Selective repeat: it is kept, and each
/// answer says which packet it is for. With delivery out of order a gap is no loss and nothing is NACKed. A trimmed packet is
/// NACKed at once, by itself.
/// Notifications (DCQCN's CNP): at once where none went in the last interval, else at its end if a mark came meanwhile.
class Receiver
{
  public:
    using Arrived = std::function<void(uint64_t id)>;

    struct Way
    {
        uint32_t number;
        /// Where the data comes from.
        uint32_t destination;
        const std::vector<uint32_t>* path;
        Port* port;
    };

    Receiver(const RdmaSettings& settings, const Way& way, PacketPool* pool, const Arrived& arrived);

    /// Answers by another path from its next packet on; null: switches choose.
    void TakeWay(const std::vector<uint32_t>* path, Port* port)
    {
        way_.path = path;
        way_.port = port;
    }
    /// A message whose last byte is before `end` will come, after those told before.
    void Expect(uint64_t id, uint64_t end);
    /// Data came; its telemetry goes back with the answer.
    void Take(Packet& data);
    /// Nothing will be said before more comes.
    bool Quiet() const
    {
        return !notification_due_;
    }
    /// What it is left with where it is quiet.
    void State(StateWalk& walk)
    {
        walk.Time(notified_at_, interval_ps_);
    }
    /// Makes the message under way so much shorter.
    void Skip(uint64_t bytes);

  private:
    struct Message
    {
        uint64_t end;
        uint64_t id;
    };

    void Store(const Packet& data);
    void Answer(PacketKind kind, Packet& data);
    void Notify();
    void SendNotification();
    Packet* Make(PacketKind kind) const;

    const RdmaSettings& settings_;
    Way way_;
    PacketPool* pool_;
    const Arrived& arrived_;
    std::deque<Message> messages_;
    uint64_t expected_ = 0;
    Intervals early_;
    bool nacked_ = false;
    int64_t interval_ps_;
    int64_t notified_at_ = kNeverYet;
    bool notification_due_ = false;
};

} // namespace cosim
