// A packet, as hosts and switches hand it on.
#pragma once

#include "path_finder.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace cosim {

/// Bytes on the wire beside the payload: IPv4 20, UDP 8, InfiniBand BTH 12 and ICRC 4 within the MTU (RoCEv2), Ethernet
/// header 14 and FCS 4 beside it. Preamble and gap (20 bytes) are not modelled.
inline constexpr uint32_t kTransportHeaders = 44;
inline constexpr uint32_t kEthernetHeaders = 18;
/// An acknowledgement has an AETH of 4 bytes, a pause frame is Ethernet's smallest.
inline constexpr uint32_t kAckBytes = kTransportHeaders + kEthernetHeaders + 4;
inline constexpr uint32_t kPauseBytes = 64;
/// What is left of a trimmed packet: headers, padded to Ethernet's smallest frame.
inline constexpr uint32_t kTrimmedBytes = kTransportHeaders + kEthernetHeaders + 2;
/// HPCC's header: 2 bytes and 8 for each of five hops.
inline constexpr uint32_t kTelemetryBytes = 42;

inline constexpr uint32_t kMaxClasses = 8;

enum class PacketKind : uint8_t
{
    kData,
    kAck,
    kNack,
    kCnp,
    kPause,
};

/// In-network telemetry: what a switch says when the packet leaves it.
struct HopReport
{
    int64_t time_ps;
    uint64_t tx_bytes;
    uint64_t queue_bytes;
    double rate_bps;
    uint32_t link;
};

struct Packet
{
    PacketKind kind = PacketKind::kData;
    /// Class of priority of data, 0 first.
    uint8_t priority = 0;
    /// Congestion experienced (ECN); an acknowledgement says it of the data that it answers.
    bool marked = false;
    /// A switch had no room for its payload; an acknowledgement says it of the data that it answers.
    bool trimmed = false;
    /// Of a pause frame: stop or go on.
    bool stop = false;
    uint32_t wire_bytes = 0;
    /// Of data; of an acknowledgement: of the data that it answers.
    uint32_t payload_bytes = 0;
    uint32_t queue_pair = 0;
    /// Where it is to go.
    uint32_t destination = 0;
    /// The link that it came in over; kNoLink at its source.
    uint32_t in_link = 0;
    /// Links to go: those of `path` from `hop` on.
    const std::vector<uint32_t>* path = nullptr;
    uint32_t hop = 0;
    /// Offset in the queue pair's bytes of data, or of the data that is answered; of a pause frame the link that it stops.
    uint64_t sequence = 0;
    /// Of an acknowledgement: offset of the first byte that has not come.
    uint64_t expected = 0;
    /// When the data left its host; acknowledgements take it back.
    int64_t sent_ps = 0;
    std::vector<HopReport> telemetry;
    Packet* next = nullptr;
};

/// Packets that are used again: memory follows what is in flight.
class PacketPool
{
  public:
    /// A packet as new, but for the room of its telemetry.
    Packet* Take();
    void Release(Packet* packet);

  private:
    std::vector<std::unique_ptr<Packet>> all_;
    Packet* free_ = nullptr;
};

/// First in, first out; packets hang on one another.
class PacketQueue
{
  public:
    bool Empty() const
    {
        return first_ == nullptr;
    }
    uint64_t Bytes() const
    {
        return bytes_;
    }
    void Push(Packet* packet);
    Packet* Pop();

  private:
    Packet* first_ = nullptr;
    Packet* last_ = nullptr;
    uint64_t bytes_ = 0;
};

} // namespace cosim
