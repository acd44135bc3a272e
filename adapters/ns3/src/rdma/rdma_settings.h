// What a session with RDMA is opened with, free of gRPC and of ns-3.
#pragma once

#include "control.h"
#include "own_control.h"
#include "session_settings.h"

#include <map>
#include <optional>
#include <string>

namespace cosim {

/// How switches choose where routing is left to them packet by packet (spray).
enum class Balancing
{
    kRandom,
    kFlowlet,
    kAdaptive,
};

struct RdmaSettings : SessionSettings
{
    /// One of AllControls(), or `own`.
    std::string control = "dcqcn";
    Parameters parameters;
    OwnControl own;

    /// Room for each port; ports of a switch share the sum. 0: 256 packets, at least 4 times where everything is marked.
    uint64_t buffer_bytes = 0;
    /// False: each port has its own room.
    bool shared_buffer = true;
    /// A queue (with PFC: what came in over one link) may have this times the room that is free. 0: 1, with PFC 1/8.
    double alpha = 0;
    std::optional<bool> pfc;
    /// Switches cut packets without room down to their headers instead of dropping them.
    std::optional<bool> trimming;
    /// Bytes of one link and class in a switch from which the link is stopped; 0: by alpha.
    uint64_t pfc_threshold_bytes = 0;
    /// Room for what comes after that, for each link and class; 0: what the link's rate and length need.
    uint64_t headroom_bytes = 0;
    /// Instead of the control's own.
    std::optional<Marking> marking;
    double ecn_probability = 1;
    Balancing balancing = Balancing::kRandom;
    /// Packets of a queue pair that come later than this after the last may take another way.
    int64_t flowlet_gap_ps = 50'000'000;
    /// Whether a gap is no loss: receivers take packets in any order. By default where each packet is on its own.
    std::optional<bool> out_of_order;
    /// Whether receivers keep what comes out of order and only what is missing is sent again.
    std::optional<bool> selective;
    /// Time that need not be simulated is not (FastForward): what is exactly as before (0), or within this of it.
    std::optional<double> fast_forward;
    /// Least retransmission timeout; 0: 500 us, with PFC InfiniBand's usual 67 ms (4.096 us * 2^14).
    int64_t rto_ps = 0;

    /// Sets an option; throws SessionError (INVALID_OPEN) for an unknown one or a bad value.
    void SetOption(const std::string& key, const std::string& value);

    /// Fills in what was left to the adapter and checks the rest; throws SessionError (INVALID_OPEN).
    void Finish();

    const ControlKind& Kind() const;
    bool IsOwn() const
    {
        return control == "own";
    }
    bool Lossless() const
    {
        return *pfc;
    }
    bool Trims() const
    {
        return *trimming;
    }
    bool OutOfOrder() const
    {
        return *out_of_order;
    }
    bool Selective() const
    {
        return *selective;
    }
    /// Of a port of this rate.
    Marking MarkingOf(double rate_bps) const;
    /// Room of a port of this rate.
    uint64_t BufferOf(double rate_bps) const;
    uint32_t Payload() const
    {
        return mtu_bytes - kTransportHeaders;
    }
    /// A full packet on the wire.
    uint32_t WireBytes() const
    {
        return mtu_bytes + kEthernetHeaders + (Kind().telemetry ? kTelemetryBytes : 0);
    }

    /// All of it, for the user to read.
    std::map<std::string, std::string> Told() const;

    /// Every option and what it means, those of controls included.
    static std::map<std::string, std::string> About();

  private:
    void CheckFastForward() const;

    /// Of `own`, once it is loaded.
    ControlKind own_kind_;
};

} // namespace cosim
