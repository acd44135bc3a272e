// What a session with TCP is opened with, free of gRPC and of ns-3.
#pragma once

#include "session_settings.h"

#include <cstdint>
#include <map>
#include <string>

namespace cosim {

struct TcpSettings : SessionSettings
{
    /// cubic, newreno or dctcp.
    std::string transport = "cubic";
    /// drop_tail or red.
    std::string queue = "drop_tail";
    uint64_t queue_bytes = 0;
    bool ecn = false;
    uint64_t mark_min_bytes = 0;
    uint64_t mark_max_bytes = 0;

    // The adapter's own options.
    int64_t min_rto_ps = 500'000'000;
    int64_t delayed_ack_ps = 40'000'000;
    uint32_t delayed_ack_count = 2;
    uint32_t initial_window = 10;
    uint32_t send_gate_packets = 2;
    uint64_t receive_buffer_bytes = uint64_t{16} << 20;

    /// Sets an option; throws SessionError (INVALID_OPEN) for an unknown one or a bad value.
    void SetOption(const std::string& key, const std::string& value);

    /// Fills in what was left to the adapter and checks the rest; throws SessionError (INVALID_OPEN).
    void Finish();

    /// All of it, for the user to read.
    std::map<std::string, std::string> Told() const;

    /// Every option and what it means.
    static std::map<std::string, std::string> Options();
};

} // namespace cosim
