#include "congestion.h"

#include <cmath>
#include <utility>

namespace cosim {

NS_OBJECT_ENSURE_REGISTERED(OuterCongestion);
NS_OBJECT_ENSURE_REGISTERED(ValidatedWindow);
NS_OBJECT_ENSURE_REGISTERED(MlTcp);

ns3::TypeId
OuterCongestion::GetTypeId()
{
    static ns3::TypeId tid =
        ns3::TypeId("cosim::OuterCongestion").SetParent<ns3::TcpCongestionOps>().AddConstructor<OuterCongestion>();
    return tid;
}

OuterCongestion::OuterCongestion(ns3::Ptr<ns3::TcpCongestionOps> inner)
    : inner_(std::move(inner))
{
}

std::string
OuterCongestion::GetName() const
{
    return inner_->GetName();
}

void
OuterCongestion::Init(ns3::Ptr<ns3::TcpSocketState> tcb)
{
    inner_->Init(tcb);
}

uint32_t
OuterCongestion::GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> tcb, uint32_t in_flight)
{
    return inner_->GetSsThresh(tcb, in_flight);
}

void
OuterCongestion::IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segments)
{
    inner_->IncreaseWindow(tcb, segments);
}

void
OuterCongestion::PktsAcked(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segments, const ns3::Time& rtt)
{
    inner_->PktsAcked(tcb, segments, rtt);
}

void
OuterCongestion::CongestionStateSet(ns3::Ptr<ns3::TcpSocketState> tcb, const ns3::TcpSocketState::TcpCongState_t state)
{
    inner_->CongestionStateSet(tcb, state);
}

void
OuterCongestion::CwndEvent(ns3::Ptr<ns3::TcpSocketState> tcb, const ns3::TcpSocketState::TcpCAEvent_t event)
{
    inner_->CwndEvent(tcb, event);
}

bool
OuterCongestion::HasCongControl() const
{
    return inner_->HasCongControl();
}

void
OuterCongestion::CongControl(ns3::Ptr<ns3::TcpSocketState> tcb,
                             const ns3::TcpRateOps::TcpRateConnection& connection,
                             const ns3::TcpRateOps::TcpRateSample& sample)
{
    inner_->CongControl(tcb, connection, sample);
}

ns3::Ptr<ns3::TcpCongestionOps>
OuterCongestion::Fork()
{
    // Sockets are made in pairs, never forked by a listener: what stands before the inner one belongs to one socket.
    return inner_->Fork();
}

ns3::TypeId
ValidatedWindow::GetTypeId()
{
    static ns3::TypeId tid =
        ns3::TypeId("cosim::ValidatedWindow").SetParent<OuterCongestion>().AddConstructor<ValidatedWindow>();
    return tid;
}

ValidatedWindow::ValidatedWindow(ns3::Ptr<ns3::TcpCongestionOps> inner)
    : OuterCongestion(std::move(inner))
{
}

void
ValidatedWindow::IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segments)
{
    const uint64_t window = tcb->m_cWnd;
    const uint64_t flight = in_flight() + uint64_t{segments} * tcb->m_segmentSize;
    const bool slow_start = window < tcb->m_ssThresh;
    // In slow start Linux lets the window be twice what was in flight; later a few segments are lost to rounding.
    if (slow_start ? window < 2 * flight : window <= flight + 3 * tcb->m_segmentSize)
    {
        inner_->IncreaseWindow(tcb, segments);
    }
}

ns3::TypeId
MlTcp::GetTypeId()
{
    static ns3::TypeId tid = ns3::TypeId("cosim::MlTcp").SetParent<OuterCongestion>().AddConstructor<MlTcp>();
    return tid;
}

MlTcp::MlTcp(ns3::Ptr<ns3::TcpCongestionOps> inner, double slope, double intercept)
    : OuterCongestion(std::move(inner)),
      slope_(slope),
      intercept_(intercept)
{
}

void
MlTcp::IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segments)
{
    const uint32_t before = tcb->m_cWnd;
    const bool slow_start = before < tcb->m_ssThresh;
    inner_->IncreaseWindow(tcb, segments);
    const uint32_t after = tcb->m_cWnd;
    if (slow_start || after <= before || coflow_ == nullptr)
    {
        return;
    }
    // The window is whole bytes: what rounding leaves over goes into the next growth.
    const double grown = (after - before) * (slope_ * coflow_->Share() + intercept_) + rest_;
    const double whole = std::floor(grown);
    rest_ = grown - whole;
    tcb->m_cWnd = before + static_cast<uint32_t>(whole);
}

} // namespace cosim
