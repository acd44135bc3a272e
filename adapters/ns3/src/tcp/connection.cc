#include "connection.h"

#include <ns3/ipv4-end-point.h>
#include <ns3/packet.h>
#include <ns3/rtt-estimator.h>
#include <ns3/tcp-cubic.h>
#include <ns3/tcp-dctcp.h>
#include <ns3/tcp-l4-protocol.h>
#include <ns3/tcp-prr-recovery.h>
#include <ns3/tcp-rx-buffer.h>
#include <ns3/tcp-tx-buffer.h>

#include <algorithm>
#include <limits>

namespace cosim {
namespace {

ns3::Ptr<ns3::TcpCongestionOps>
MakeCongestion(const TcpSettings& settings)
{
    if (settings.transport == "dctcp")
    {
        return ns3::CreateObject<ns3::TcpDctcp>();
    }
    if (settings.transport == "newreno")
    {
        return ns3::CreateObject<ns3::TcpNewReno>();
    }
    return ns3::CreateObject<ns3::TcpCubic>();
}

} // namespace

NS_OBJECT_ENSURE_REGISTERED(WiredSocket);

ns3::TypeId
WiredSocket::GetTypeId()
{
    static ns3::TypeId tid =
        ns3::TypeId("cosim::WiredSocket").SetParent<ns3::TcpSocketBase>().AddConstructor<WiredSocket>();
    return tid;
}

ns3::Ptr<WiredSocket>
WiredSocket::Make(const End& here, const End& there, ns3::Ptr<ns3::TcpCongestionOps> congestion)
{
    auto socket = ns3::CreateObject<WiredSocket>();
    socket->SetNode(here.node);
    socket->SetTcp(here.node->GetObject<ns3::TcpL4Protocol>());
    socket->SetRtt(ns3::CreateObject<ns3::RttMeanDeviation>());
    socket->SetCongestionControlAlgorithm(congestion);
    socket->SetRecoveryAlgorithm(ns3::CreateObject<ns3::TcpPrrRecovery>());
    socket->m_endPoint = socket->m_tcp->Allocate(nullptr, here.address, here.port, there.address, there.port);
    socket->m_tcp->AddSocket(socket);
    socket->SetupCallback();
    socket->Establish();
    return socket;
}

void
WiredSocket::Establish()
{
    const ns3::SequenceNumber32 first(1); // SYN took 0
    m_congestionControl->CongestionStateSet(m_tcb, ns3::TcpSocketState::CA_OPEN);
    m_tcb->m_congState = ns3::TcpSocketState::CA_OPEN;
    m_state = ESTABLISHED;
    m_connected = true;
    m_synCount = m_synRetries;
    m_dataRetrCount = m_dataRetries;
    m_delAckCount = 0;
    m_tcb->m_rxBuffer->SetNextRxSequence(first);
    m_tcb->m_nextTxSequence = first;
    m_tcb->m_highTxMark = first;
    m_tcb->m_lastAckedSeq = first;
    m_txBuffer->SetHeadSequence(first);
    m_highTxAck = first;
    m_highRxMark = first;
    m_highRxAckMark = first;
    // Both ends are made alike: what this one announces is what the other one would.
    m_rcvWindShift = CalculateWScale();
    m_sndWindShift = m_rcvWindShift;
    m_rWnd = static_cast<uint32_t>(AdvertisedWindowSize()) << m_sndWindShift;
    m_tcb->m_cWnd = GetInitialCwnd() * GetSegSize();
    m_tcb->m_cWndInfl = m_tcb->m_cWnd;
    m_tcb->m_ssThresh = GetInitialSSThresh();
    m_tcb->m_ecnState = m_tcb->m_useEcn == ns3::TcpSocketState::Off ? ns3::TcpSocketState::ECN_DISABLED
                                                                    : ns3::TcpSocketState::ECN_IDLE;
    m_rto = std::max(m_rtt->GetEstimate(), m_minRto);
}

uint32_t
WiredSocket::AvailableWindow() const
{
    const uint32_t window = TcpSocketBase::AvailableWindow();
    if (window > 0 && gate_ != nullptr && gate_->IsShut())
    {
        gate_->Wait(const_cast<WiredSocket*>(this));
        return 0;
    }
    return window;
}

void
WiredSocket::Resume()
{
    SendPendingData(m_connected);
}

uint32_t
WiredSocket::TakeAcknowledged()
{
    const ns3::SequenceNumber32 head = m_txBuffer->HeadSequence();
    const int32_t fresh = head - taken_;
    taken_ = head;
    return fresh > 0 ? static_cast<uint32_t>(fresh) : 0;
}

void
WiredSocket::NewAck(const ns3::SequenceNumber32& ack, bool reset_rto)
{
    TcpSocketBase::NewAck(ack, reset_rto);
    if (on_acknowledged)
    {
        on_acknowledged();
    }
}

Connection::Connection(const TcpSettings& settings,
                       const WiredSocket::End& from,
                       const WiredSocket::End& to,
                       SendGate* gate,
                       Arrived arrived)
    : arrived_(std::move(arrived))
{
    ns3::Ptr<ns3::TcpCongestionOps> congestion = MakeCongestion(settings);
    if (settings.mltcp)
    {
        mltcp_ = ns3::CreateObject<MlTcp>(congestion, settings.mltcp_slope, settings.mltcp_intercept);
        congestion = mltcp_;
    }
    auto validated = ns3::CreateObject<ValidatedWindow>(congestion);
    sender_ = WiredSocket::Make(from, to, validated);
    validated->in_flight = [socket = ns3::PeekPointer(sender_)] { return socket->InFlight(); };
    sender_->SetGate(gate);
    receiver_ = WiredSocket::Make(to, from, MakeCongestion(settings));
    sender_->SetSendCallback(ns3::Callback<void, ns3::Ptr<ns3::Socket>, uint32_t>(
        [this](ns3::Ptr<ns3::Socket>, uint32_t) { Pump(); }));
    receiver_->SetRecvCallback(
        ns3::Callback<void, ns3::Ptr<ns3::Socket>>([this](ns3::Ptr<ns3::Socket>) { Read(); }));
    if (mltcp_)
    {
        sender_->on_acknowledged = [this] { CountAcknowledged(); };
    }
}

void
Connection::Send(uint64_t id, int64_t size_bytes, Coflow* coflow)
{
    // TCP can't tell the receiver of nothing: an empty message is one byte.
    const int64_t size = std::max<int64_t>(size_bytes, 1);
    given_ += size;
    unsent_ += size;
    ranges_.push_back({given_, id});
    if (mltcp_)
    {
        unacknowledged_.push_back({size, coflow});
        mltcp_->SetCoflow(unacknowledged_.front().coflow);
    }
    Pump();
}

void
Connection::Pump()
{
    while (unsent_ > 0)
    {
        const auto room = static_cast<int64_t>(sender_->GetTxAvailable());
        const auto part = static_cast<uint32_t>(std::min(unsent_, room));
        if (part == 0 || sender_->Send(ns3::Create<ns3::Packet>(part), 0) <= 0)
        {
            return;
        }
        unsent_ -= part;
    }
}

void
Connection::Read()
{
    while (const uint32_t ready = receiver_->GetRxAvailable())
    {
        auto packet = receiver_->Recv(ready, 0);
        if (!packet || packet->GetSize() == 0)
        {
            break;
        }
        received_ += packet->GetSize();
    }
    while (!ranges_.empty() && ranges_.front().end <= received_)
    {
        const uint64_t id = ranges_.front().id;
        ranges_.pop_front();
        arrived_(id);
    }
}

void
Connection::CountAcknowledged()
{
    int64_t fresh = sender_->TakeAcknowledged();
    while (fresh > 0 && !unacknowledged_.empty())
    {
        Piece& piece = unacknowledged_.front();
        const int64_t part = std::min(fresh, piece.left);
        piece.left -= part;
        fresh -= part;
        if (piece.coflow != nullptr)
        {
            piece.coflow->acknowledged += part;
        }
        if (piece.left == 0)
        {
            unacknowledged_.pop_front();
        }
    }
    mltcp_->SetCoflow(unacknowledged_.empty() ? nullptr : unacknowledged_.front().coflow);
}

} // namespace cosim
