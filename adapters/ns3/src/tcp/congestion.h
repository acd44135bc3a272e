// Congestion controls that stand before another one.
#pragma once

#include "coflow.h"

#include <ns3/tcp-congestion-ops.h>

#include <cstdint>
#include <functional>

namespace cosim {

/// Passes everything on to the inner algorithm.
class OuterCongestion : public ns3::TcpCongestionOps
{
  public:
    static ns3::TypeId GetTypeId();
    OuterCongestion() = default;
    explicit OuterCongestion(ns3::Ptr<ns3::TcpCongestionOps> inner);

    std::string GetName() const override;
    void Init(ns3::Ptr<ns3::TcpSocketState> tcb) override;
    uint32_t GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> tcb, uint32_t in_flight) override;
    void IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segments) override;
    void PktsAcked(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segments, const ns3::Time& rtt) override;
    void CongestionStateSet(ns3::Ptr<ns3::TcpSocketState> tcb,
                            const ns3::TcpSocketState::TcpCongState_t state) override;
    void CwndEvent(ns3::Ptr<ns3::TcpSocketState> tcb, const ns3::TcpSocketState::TcpCAEvent_t event) override;
    bool HasCongControl() const override;
    void CongControl(ns3::Ptr<ns3::TcpSocketState> tcb,
                     const ns3::TcpRateOps::TcpRateConnection& connection,
                     const ns3::TcpRateOps::TcpRateSample& sample) override;
    ns3::Ptr<ns3::TcpCongestionOps> Fork() override;

  protected:
    ns3::Ptr<ns3::TcpCongestionOps> inner_;
};

/// The window grows only while it is what limits the sender (RFC 7661; Linux's tcp_is_cwnd_limited).
///
/// ns-3 grows it with every acknowledgement. Where messages end or the own port is the bottleneck, the window would so
/// grow to the receive buffer, and mean nothing when congestion comes.
class ValidatedWindow : public OuterCongestion
{
  public:
    static ns3::TypeId GetTypeId();
    ValidatedWindow() = default;
    explicit ValidatedWindow(ns3::Ptr<ns3::TcpCongestionOps> inner);

    /// Bytes sent and not acknowledged; asked when an acknowledgement has been taken in.
    std::function<uint32_t()> in_flight;

    void IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segments) override;
};

/// MLTCP: over any other congestion control, its window's growth in congestion avoidance times slope * r + intercept,
/// where r is the share of its iteration's bytes that the job has sent.
///
/// Jobs that are nearer to the end of their iteration's communication take more, so that the jobs' communication phases
/// drift apart (Rajasekaran, Narang, Zabreyko, Ghobadi 2024, "MLTCP: A Distributed Technique to Approximate Centralized
/// Flow Scheduling For Machine Learning", HotNets, doi:10.1145/3696348.3696878). Slow start and reductions are the inner
/// algorithm's own. r comes from what all of the job's connections have had acknowledged, at once: on a real cluster
/// each would know its own share only, or hear of the others' late.
class MlTcp : public OuterCongestion
{
  public:
    static ns3::TypeId GetTypeId();
    MlTcp() = default;
    MlTcp(ns3::Ptr<ns3::TcpCongestionOps> inner, double slope, double intercept);

    /// Whose message is being sent; null between messages.
    void SetCoflow(const Coflow* coflow)
    {
        coflow_ = coflow;
    }

    void IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segments) override;

  private:
    double slope_ = 1.75;
    double intercept_ = 0.25;
    double rest_ = 0;
    const Coflow* coflow_ = nullptr;
};

} // namespace cosim
