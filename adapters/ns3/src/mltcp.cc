#include "mltcp.h"

#include <cmath>

namespace cosim {

NS_OBJECT_ENSURE_REGISTERED(MlTcp);

ns3::TypeId
MlTcp::GetTypeId()
{
    static ns3::TypeId tid =
        ns3::TypeId("cosim::MlTcp").SetParent<ns3::TcpCongestionOps>().AddConstructor<MlTcp>();
    return tid;
}

MlTcp::MlTcp(ns3::Ptr<ns3::TcpCongestionOps> inner, double slope, double intercept)
    : inner_(inner),
      slope_(slope),
      intercept_(intercept)
{
}

std::string
MlTcp::GetName() const
{
    return "MlTcp over " + inner_->GetName();
}

void
MlTcp::Init(ns3::Ptr<ns3::TcpSocketState> tcb)
{
    inner_->Init(tcb);
}

uint32_t
MlTcp::GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> tcb, uint32_t in_flight)
{
    return inner_->GetSsThresh(tcb, in_flight);
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

void
MlTcp::PktsAcked(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segments, const ns3::Time& rtt)
{
    inner_->PktsAcked(tcb, segments, rtt);
}

void
MlTcp::CongestionStateSet(ns3::Ptr<ns3::TcpSocketState> tcb, const ns3::TcpSocketState::TcpCongState_t state)
{
    inner_->CongestionStateSet(tcb, state);
}

void
MlTcp::CwndEvent(ns3::Ptr<ns3::TcpSocketState> tcb, const ns3::TcpSocketState::TcpCAEvent_t event)
{
    inner_->CwndEvent(tcb, event);
}

bool
MlTcp::HasCongControl() const
{
    return inner_->HasCongControl();
}

void
MlTcp::CongControl(ns3::Ptr<ns3::TcpSocketState> tcb,
                   const ns3::TcpRateOps::TcpRateConnection& connection,
                   const ns3::TcpRateOps::TcpRateSample& sample)
{
    inner_->CongControl(tcb, connection, sample);
}

ns3::Ptr<ns3::TcpCongestionOps>
MlTcp::Fork()
{
    auto copy = ns3::CreateObject<MlTcp>(inner_->Fork(), slope_, intercept_);
    copy->coflow_ = coflow_;
    return copy;
}

} // namespace cosim
