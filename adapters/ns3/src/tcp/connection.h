// One TCP connection for each (job, source, destination, channel), and messages as ranges of its bytes.
#pragma once

#include "congestion.h"
#include "send_gate.h"
#include "tcp_settings.h"

#include <ns3/tcp-socket-base.h>

#include <cstdint>
#include <deque>
#include <functional>

namespace cosim {

/// A TCP socket that can be connected without a handshake.
///
/// Training connects its ranks once, before the first iteration; a handshake in the first message of each pair would be
/// in every figure. So both ends begin in ESTABLISHED, with what SYN and SYN-ACK would have agreed on: window scale,
/// SACK, ECN. Everything after that is ns-3's own.
class WiredSocket : public ns3::TcpSocketBase
{
  public:
    static ns3::TypeId GetTypeId();

    struct End
    {
        ns3::Ptr<ns3::Node> node;
        ns3::Ipv4Address address;
        uint16_t port;
    };

    static ns3::Ptr<WiredSocket> Make(const End& here,
                                      const End& there,
                                      ns3::Ptr<ns3::TcpCongestionOps> congestion);

    /// Bytes that the other end has acknowledged since the last call.
    uint32_t TakeAcknowledged();
    /// Called after each acknowledgement that brought something.
    std::function<void()> on_acknowledged;

    /// Bytes sent and not acknowledged.
    uint32_t InFlight() const
    {
        return BytesInFlight();
    }

    /// What to wait at before sending; null: nothing.
    void SetGate(SendGate* gate)
    {
        gate_ = gate;
    }

    /// The gate is open: send.
    void Resume();

    /// Whether it is in the gate's line; the gate's to set.
    bool waiting = false;

  protected:
    uint32_t AvailableWindow() const override;
    void NewAck(const ns3::SequenceNumber32& ack, bool reset_rto) override;

  private:
    void Establish();
    SendGate* gate_ = nullptr;
    ns3::SequenceNumber32 taken_{1};
};

/// A direction of messages. Bytes go in the order of `Send`; a message has arrived when the receiver has read to its end.
class Connection
{
  public:
    using Arrived = std::function<void(uint64_t id)>;

    Connection(const TcpSettings& settings,
               const WiredSocket::End& from,
               const WiredSocket::End& to,
               SendGate* gate,
               Arrived arrived);

    void Send(uint64_t id, int64_t size_bytes, Coflow* coflow);
    /// What it waits at from now on: it sends by another port.
    void SetGate(SendGate* gate)
    {
        sender_->SetGate(gate);
    }

  private:
    struct Range
    {
        int64_t end;
        uint64_t id;
    };

    struct Piece
    {
        int64_t left;
        Coflow* coflow;
    };

    void Pump();
    void Read();
    void CountAcknowledged();

    ns3::Ptr<WiredSocket> sender_;
    ns3::Ptr<WiredSocket> receiver_;
    ns3::Ptr<MlTcp> mltcp_;
    Arrived arrived_;
    std::deque<Range> ranges_;
    std::deque<Piece> unacknowledged_;
    int64_t given_ = 0;
    int64_t unsent_ = 0;
    int64_t received_ = 0;
};

} // namespace cosim
