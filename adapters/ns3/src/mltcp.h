// MLTCP: congestion control that knows how much of its iteration a job has sent.
#pragma once

#include <ns3/tcp-congestion-ops.h>

#include <cstdint>

namespace cosim {

/// What the connections of one coflow (a job's iteration) have sent together, as acknowledged.
struct Coflow
{
    int64_t acknowledged = 0;
    int64_t total = 0;

    /// Share sent, 0 to 1; 1 for a coflow of unknown size, which so grows as the plain algorithm at r = 1 does.
    double Share() const
    {
        return total <= 0 ? 1.0 : acknowledged >= total ? 1.0 : static_cast<double>(acknowledged) / static_cast<double>(total);
    }
};

/// Over any other congestion control: its window growth in congestion avoidance times slope * r + intercept.
///
/// Jobs that are nearer to the end of their iteration's communication take more, so that the jobs' communication phases
/// drift apart (Rajasekaran, Narang, Zabreyko, Ghobadi 2024, "MLTCP: A Distributed Technique to Approximate Centralized
/// Flow Scheduling For Machine Learning", doi:10.1145/3696348.3696878). Slow start and reductions are the inner
/// algorithm's own.
class MlTcp : public ns3::TcpCongestionOps
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

  private:
    ns3::Ptr<ns3::TcpCongestionOps> inner_;
    double slope_ = 1.75;
    double intercept_ = 0.25;
    double rest_ = 0;
    const Coflow* coflow_ = nullptr;
};

} // namespace cosim
