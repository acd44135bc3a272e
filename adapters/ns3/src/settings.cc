#include "settings.h"

#include "error.h"

#include <charconv>
#include <functional>
#include <sstream>

namespace cosim {
namespace {

constexpr uint64_t kDefaultQueuePackets = 256;
// DCTCP's K at 10 Gb/s (Alizadeh et al. 2010, doi:10.1145/1851182.1851192), in packets of the session's MTU.
constexpr uint64_t kDefaultMarkPackets = 65;

template <typename T>
T
Parse(const std::string& key, const std::string& text, T low, T high)
{
    T value{};
    const char* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, value);
    if (fault != std::errc() || stop != end || value < low || value > high)
    {
        std::ostringstream message;
        message << "option " << key << " is " << text << "; it takes a number from " << low << " to " << high;
        throw SessionError("INVALID_OPEN", message.str(), {{"field", "options." + key}});
    }
    return value;
}

struct Option
{
    const char* about;
    std::function<void(Settings&, const std::string& key, const std::string& value)> set;
    std::function<std::string(const Settings&)> tell;
};

template <typename T>
Option
Number(const char* about, T Settings::*field, T low, T high)
{
    return {about,
            [=](Settings& s, const std::string& key, const std::string& value) {
                s.*field = Parse<T>(key, value, low, high);
            },
            [=](const Settings& s) {
                std::ostringstream text;
                text << s.*field;
                return text.str();
            }};
}

const std::map<std::string, Option>&
AllOptions()
{
    constexpr int64_t second = 1'000'000'000'000;
    static const std::map<std::string, Option> options = {
        {"min_rto_ps", Number("least retransmission timeout", &Settings::min_rto_ps, int64_t{1000}, 60 * second)},
        {"delayed_ack_ps", Number("longest delay of an ACK", &Settings::delayed_ack_ps, int64_t{1000}, second)},
        {"delayed_ack_count",
         Number("segments that one ACK acknowledges", &Settings::delayed_ack_count, 1u, 64u)},
        {"initial_window", Number("initial congestion window, segments", &Settings::initial_window, 1u, 10000u)},
        {"send_gate_packets",
         Number("packets in an endpoint's own port from which its sockets wait (TCP small queues); 0: any number",
                &Settings::send_gate_packets,
                0u,
                1000000u)},
        {"receive_buffer_bytes",
         Number("receive buffer, the largest window",
                &Settings::receive_buffer_bytes,
                uint64_t{65536},
                uint64_t{1} << 29)},
        {"mltcp_slope", Number("MLTCP: growth at share r of the coflow is slope * r + intercept",
                               &Settings::mltcp_slope, 0.0, 100.0)},
        {"mltcp_intercept", Number("MLTCP: see mltcp_slope", &Settings::mltcp_intercept, 0.0, 100.0)},
    };
    return options;
}

} // namespace

void
Settings::SetOption(const std::string& key, const std::string& value)
{
    const auto found = AllOptions().find(key);
    if (found == AllOptions().end())
    {
        std::string known;
        for (const auto& [name, option] : AllOptions())
        {
            known += (known.empty() ? "" : ", ") + name;
        }
        Invalid("options." + key, "ns-3 has no option " + key + "; there are " + known);
    }
    found->second.set(*this, key, value);
}

void
Settings::Finish()
{
    CheckTopology(topology);
    const size_t links = topology.link_src.size();
    if (mtu_bytes < 576 || mtu_bytes > 65000)
    {
        Invalid("transport.mtu_bytes", "an MTU is 576 to 65000 bytes, not " + std::to_string(mtu_bytes));
    }
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
    for (const LinkEvent& event : link_events)
    {
        if (event.link >= links || event.time_ps < 0)
        {
            Invalid("link_events", "an event names link " + std::to_string(event.link) + " at " +
                                       std::to_string(event.time_ps) + " ps");
        }
    }
}

std::map<std::string, std::string>
Settings::Told() const
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
Settings::Options()
{
    std::map<std::string, std::string> told;
    for (const auto& [name, option] : AllOptions())
    {
        told[name] = option.about;
    }
    return told;
}

} // namespace cosim
