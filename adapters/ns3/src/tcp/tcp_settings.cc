#include "tcp_settings.h"

#include "options.h"

#include <algorithm>

namespace cosim {
namespace {

constexpr uint64_t kDefaultQueuePackets = 256;
// DCTCP's K at 10 Gb/s (Alizadeh et al. 2010, doi:10.1145/1851182.1851192), in packets of the session's MTU.
constexpr uint64_t kDefaultMarkPackets = 65;

const Options<TcpSettings>&
AllOptions()
{
    constexpr int64_t second = 1'000'000'000'000;
    using S = TcpSettings;
    static const Options<S> options = {
        {"min_rto_ps", NumberOption<S>("least retransmission timeout", &S::min_rto_ps, int64_t{1000}, 60 * second)},
        {"delayed_ack_ps", NumberOption<S>("longest delay of an ACK", &S::delayed_ack_ps, int64_t{1000}, second)},
        {"delayed_ack_count", NumberOption<S>("segments that one ACK acknowledges", &S::delayed_ack_count, 1u, 64u)},
        {"initial_window",
         NumberOption<S>("initial congestion window, segments", &S::initial_window, 1u, 10000u)},
        {"send_gate_packets",
         NumberOption<S>(
             "packets in an endpoint's own port from which its sockets wait (TCP small queues); 0: any number",
             &S::send_gate_packets,
             0u,
             1000000u)},
        {"receive_buffer_bytes",
         NumberOption<S>("receive buffer, the largest window",
                         &S::receive_buffer_bytes,
                         uint64_t{65536},
                         uint64_t{1} << 29)},
        {"mltcp_slope",
         NumberOption<S>("MLTCP: growth at share r of the coflow is slope * r + intercept", &S::mltcp_slope, 0.0, 100.0)},
        {"mltcp_intercept", NumberOption<S>("MLTCP: see mltcp_slope", &S::mltcp_intercept, 0.0, 100.0)},
    };
    return options;
}

} // namespace

void
TcpSettings::SetOption(const std::string& key, const std::string& value)
{
    cosim::SetOption(AllOptions(), *this, key, value);
}

void
TcpSettings::Finish()
{
    CheckSession();
    if (transport != "cubic" && transport != "newreno" && transport != "dctcp")
    {
        Invalid("transport.name", "there is no transport " + transport + "; there are cubic, newreno, dctcp");
    }
    if (queue.empty())
    {
        queue = transport == "dctcp" || ecn ? "red" : "drop_tail";
    }
    if (queue != "drop_tail" && queue != "red")
    {
        Invalid("queue.discipline", "there is no queue discipline " + queue + "; there are drop_tail, red");
    }
    if (queue == "drop_tail" && ecn)
    {
        Invalid("ecn", "a drop_tail queue marks nothing; take the discipline red");
    }
    if (queue == "red" && !ecn)
    {
        ecn = true;
        mark_min_bytes = mark_max_bytes = kDefaultMarkPackets * mtu_bytes;
    }
    if (transport == "dctcp" && !ecn)
    {
        Invalid("ecn", "dctcp needs marks: take the discipline red, with ecn or its defaults");
    }
    if (mark_min_bytes > mark_max_bytes)
    {
        Invalid("ecn.mark_max_bytes", "marking ends below where it begins");
    }
    if (queue_bytes == 0)
    {
        queue_bytes = std::max(kDefaultQueuePackets * mtu_bytes, 4 * mark_max_bytes);
    }
    if (queue_bytes < 2 * uint64_t{mtu_bytes} || queue_bytes > (uint64_t{1} << 31))
    {
        Invalid("queue.capacity_bytes", "a queue has room for two packets to 2 GiB");
    }
}

std::map<std::string, std::string>
TcpSettings::Told() const
{
    std::map<std::string, std::string> told = {
        {"transport", (mltcp ? "mltcp over " : "") + transport},
        {"mtu_bytes", std::to_string(mtu_bytes)},
        {"queue", queue},
        {"queue_bytes", std::to_string(queue_bytes)},
        {"ecn", ecn ? "on" : "off"},
    };
    if (ecn)
    {
        told["mark_min_bytes"] = std::to_string(mark_min_bytes);
        told["mark_max_bytes"] = std::to_string(mark_max_bytes);
    }
    for (const auto& [name, option] : AllOptions())
    {
        told[name] = option.tell(*this);
    }
    return told;
}

std::map<std::string, std::string>
TcpSettings::Options()
{
    std::map<std::string, std::string> told;
    for (const auto& [name, option] : AllOptions())
    {
        told[name] = option.about;
    }
    return told;
}

} // namespace cosim
