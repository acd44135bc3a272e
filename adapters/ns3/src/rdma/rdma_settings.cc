#include "rdma_settings.h"

#include "options.h"

#include <algorithm>
#include <sstream>

namespace cosim {
namespace {

constexpr uint64_t kDefaultBufferPackets = 256;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;

std::string
Text(double value)
{
    std::ostringstream text;
    text.precision(12);
    text << value;
    return text.str();
}

Option<RdmaSettings>
SwitchOption(std::string about, std::optional<bool> RdmaSettings::*field, const char* no, const char* yes)
{
    return {std::move(about),
            [=](RdmaSettings& s, const std::string& key, const std::string& value) {
                if (value != no && value != yes)
                {
                    Invalid("options." + key, "option " + key + " is " + value + "; it takes " + no + " or " + yes);
                }
                s.*field = value == yes;
            },
            [=](const RdmaSettings& s) { return std::string(s.*field == true ? yes : no); }};
}

const std::map<std::string, Balancing>&
Balancings()
{
    static const std::map<std::string, Balancing> all = {
        {"random", Balancing::kRandom}, {"flowlet", Balancing::kFlowlet}, {"adaptive", Balancing::kAdaptive}};
    return all;
}

Option<RdmaSettings>
BalancingOption()
{
    return {"how switches choose with routing spray: random, flowlet, adaptive (the shortest queue)",
            [](RdmaSettings& s, const std::string& key, const std::string& value) {
                const auto found = Balancings().find(value);
                if (found == Balancings().end())
                {
                    Invalid("options." + key, "option " + key + " is " + value + "; it takes random, flowlet or adaptive");
                }
                s.balancing = found->second;
            },
            [](const RdmaSettings& s) {
                return std::find_if(Balancings().begin(), Balancings().end(), [&](const auto& one) {
                           return one.second == s.balancing;
                       })->first;
            }};
}

Option<RdmaSettings>
FastForwardOption()
{
    return {"off, exact (what happened before in the same state is recalled), or a share: settled rates are extended too",
            [](RdmaSettings& s, const std::string& key, const std::string& value) {
                s.fast_forward.reset();
                if (value != "off")
                {
                    s.fast_forward = value == "exact" ? 0.0 : ParseOption<double>(key, value, 1e-4, 0.1);
                }
            },
            [](const RdmaSettings& s) {
                return !s.fast_forward ? "off" : *s.fast_forward == 0 ? "exact" : Text(*s.fast_forward);
            }};
}

Option<RdmaSettings>
OwnOption(std::string about, std::function<void(OwnControl&, const std::string& key, const std::string& value)> set)
{
    return {std::move(about),
            [=](RdmaSettings& s, const std::string& key, const std::string& value) {
                if (!s.IsOwn())
                {
                    Invalid("options." + key, "option " + key + " is for the control own, not for " + s.control);
                }
                set(s.own, key, value);
            },
            [](const RdmaSettings&) { return std::string(); }};
}

Option<RdmaSettings>
OwnSwitch(std::string about, bool OwnControl::*field)
{
    return OwnOption(std::move(about), [=](OwnControl& own, const std::string& key, const std::string& value) {
        own.*field = ParseOption<int>(key, value, 0, 1) == 1;
    });
}

/// Numbers between spaces.
std::vector<double>
ParseNumbers(const std::string& key, const std::string& text)
{
    std::vector<double> numbers;
    std::istringstream parts(text);
    for (std::string one; parts >> one;)
    {
        numbers.push_back(ParseOption<double>(key, one, -1e300, 1e300));
    }
    return numbers;
}

void
SetMarks(OwnControl& own, const std::string& key, const std::string& value)
{
    const std::vector<double> numbers = ParseNumbers(key, value);
    if (numbers.size() % 4 != 0)
    {
        Invalid("options." + key, "option " + key + " takes four numbers for each rate");
    }
    for (size_t k = 0; k < numbers.size(); k += 4)
    {
        own.marks[numbers[k]] = Marking{numbers[k + 1], numbers[k + 2], numbers[k + 3]};
    }
}

const Options<RdmaSettings>&
AllOptions()
{
    using S = RdmaSettings;
    constexpr int64_t second = 1'000'000'000'000;
    static const Options<S> options = {
        {"alpha",
         NumberOption<S>("a queue (with PFC: the bytes of one link) may have this times the free room; 0: 1, with PFC 1/8",
                         &S::alpha,
                         0.0,
                         1024.0)},
        {"pfc", SwitchOption("pause the link before instead of dropping", &S::pfc, "off", "on")},
        {"trimming",
         SwitchOption("cut packets without room down to their headers instead of dropping", &S::trimming, "off", "on")},
        {"pfc_threshold_bytes",
         NumberOption<S>("bytes of one link and class from which it is stopped; 0: by alpha",
                         &S::pfc_threshold_bytes,
                         uint64_t{0},
                         kMostBytes)},
        {"headroom_bytes",
         NumberOption<S>("room for what comes after that, of each link and class; 0: what its rate and length need",
                         &S::headroom_bytes,
                         uint64_t{0},
                         kMostBytes)},
        {"balancing", BalancingOption()},
        {"fast_forward", FastForwardOption()},
        {"delivery",
         SwitchOption("in_order: a gap is a loss; out_of_order: it is not (default with trimming, and with spray but for flowlets)",
                      &S::out_of_order,
                      "in_order",
                      "out_of_order")},
        {"flowlet_gap_ps",
         NumberOption<S>("packets that come later than this after the last may take another way",
                         &S::flowlet_gap_ps,
                         int64_t{0},
                         second)},
        {"ecn_probability",
         NumberOption<S>("share marked just below ecn's maximum", &S::ecn_probability, 0.0, 1.0)},
        {"retransmission",
         SwitchOption("go_back_n or selective; by default selective without PFC", &S::selective, "go_back_n", "selective")},
        {"rto_ps",
         NumberOption<S>("least retransmission timeout; 0: 500 us, with PFC 67 ms", &S::rto_ps, int64_t{0}, 60 * second)},
        {"mltcp_slope",
         NumberOption<S>("MLTCP: growth at share r of the coflow is slope * r + intercept", &S::mltcp_slope, -100.0, 100.0)},
        {"mltcp_intercept", NumberOption<S>("MLTCP: see mltcp_slope", &S::mltcp_intercept, 0.0, 100.0)},
        {"own.library",
         OwnOption("control own: a file in the folder COSIM_CONTROLS of the server",
                   [](OwnControl& own, const std::string&, const std::string& value) { own.library = value; })},
        {"own.function",
         OwnOption("control own: the function of that library that answers",
                   [](OwnControl& own, const std::string&, const std::string& value) { own.function = value; })},
        {"own.parameters",
         OwnOption("control own: what it is given, numbers between spaces",
                   [](OwnControl& own, const std::string& key, const std::string& value) {
                       own.parameters = ParseNumbers(key, value);
                   })},
        {"own.marks",
         OwnOption("control own: for each rate of a link, bits/s: bytes from which, and from which all, and the share below",
                   SetMarks)},
        {"own.gives_rate", OwnSwitch("control own: 1: it answers by rate; 0: by window", &OwnControl::gives_rate)},
        {"own.paced", OwnSwitch("control own: 1: a window is sent evenly over a round trip", &OwnControl::paced)},
        {"own.telemetry", OwnSwitch("control own: 1: switches write telemetry into its data", &OwnControl::telemetry)},
    };
    return options;
}

std::string
Known(const std::vector<ParameterFacts>& parameters)
{
    std::string known;
    for (const ParameterFacts& one : parameters)
    {
        known += (known.empty() ? "" : ", ") + one.name;
    }
    return known;
}

} // namespace

const ControlKind&
RdmaSettings::Kind() const
{
    if (IsOwn())
    {
        return own_kind_;
    }
    const auto found = AllControls().find(control);
    if (found == AllControls().end())
    {
        std::string known;
        for (const auto& [name, kind] : AllControls())
        {
            known += (known.empty() ? "" : ", ") + name;
        }
        Invalid("transport.name", "there is no control " + control + "; there are " + known);
    }
    return found->second;
}

void
RdmaSettings::SetOption(const std::string& key, const std::string& value)
{
    const size_t dot = key.find('.');
    if (dot == std::string::npos || AllOptions().count(key) > 0)
    {
        cosim::SetOption(AllOptions(), *this, key, value);
        return;
    }
    const std::string owner = key.substr(0, dot);
    const auto& wanted = Kind().parameters;
    const auto found = std::find_if(wanted.begin(), wanted.end(), [&](const ParameterFacts& one) {
        return owner == control && one.name == key.substr(dot + 1);
    });
    if (found == wanted.end())
    {
        Invalid("options." + key, control + " does not read " + key + "; it reads " + Known(wanted));
    }
    parameters[found->name] = ParseOption<double>(key, value, found->low, found->high);
}

void
RdmaSettings::Finish()
{
    CheckSession();
    if (IsOwn())
    {
        own.seed = seed;
        own_kind_.telemetry = own.telemetry;
        own_kind_ = LoadOwn(own, WireBytes());
    }
    const ControlKind& kind = Kind();
    for (const ParameterFacts& one : kind.parameters)
    {
        parameters.try_emplace(one.name, one.value);
    }
    pfc = pfc.value_or(kind.lossless);
    const bool sprays = routing == RoutingKind::kSpray;
    trimming = trimming.value_or(kind.trims);
    out_of_order = out_of_order.value_or(*trimming || (sprays && balancing != Balancing::kFlowlet));
    selective = selective.value_or(!*pfc || *out_of_order);
    rto_ps = rto_ps > 0 ? rto_ps : *pfc ? 67'108'864'000 : 500'000'000;
    alpha = alpha > 0 ? alpha : *pfc ? 0.125 : 1.0;
    if (kind.telemetry && sprays && balancing != Balancing::kFlowlet)
    {
        Invalid("routing.kind",
                control + " compares telemetry with that of the packet before, which takes another way with spray and with "
                          "adaptive");
    }
    if (*out_of_order && !*selective)
    {
        Invalid("options.retransmission", "go_back_n throws away what comes out of order; say selective, or delivery in_order");
    }
    if (*trimming && !*out_of_order)
    {
        Invalid("options.delivery",
                "with trimming each loss is told by its own header, so that a gap is none; say out_of_order, or trimming off");
    }
    CheckFastForward();
    if (marking)
    {
        marking->most = ecn_probability;
        if (marking->from_bytes > marking->all_bytes)
        {
            Invalid("ecn.mark_max_bytes", "marking ends below where it begins");
        }
    }
    for (const double rate : topology.link_rate_bps)
    {
        const uint64_t room = BufferOf(rate);
        const Marking marks = MarkingOf(rate);
        if (room < 2 * uint64_t{WireBytes()})
        {
            Invalid("queue.capacity_bytes",
                    "a buffer of " + std::to_string(room) + " bytes has no room for two packets of " +
                        std::to_string(WireBytes()));
        }
        if (!shared_buffer && marks.most > 0 && marks.from_bytes >= static_cast<double>(room))
        {
            Invalid("ecn.mark_min_bytes",
                    "a port of " + Text(rate / 1e9) + " Gb/s marks from " + Text(marks.from_bytes) +
                        " bytes on, which its buffer of " + std::to_string(room) + " never holds");
        }
    }
}

void
RdmaSettings::CheckFastForward() const
{
    if (!fast_forward)
    {
        return;
    }
    const char* field = "options.fast_forward";
    if (mltcp)
    {
        Invalid(field, "what MLTCP does depends on how far a job's iteration has come, which fast_forward doesn't remember");
    }
    if (routing == RoutingKind::kSpray)
    {
        Invalid(field, "fast_forward needs each queue pair to have one path: routing given or ecmp");
    }
    if (!Kind().tells_state)
    {
        Invalid(field, control + " doesn't say what its state is (Control::State), which fast_forward has to remember");
    }
}

Marking
RdmaSettings::MarkingOf(double rate_bps) const
{
    if (marking)
    {
        return *marking;
    }
    const ControlKind& kind = Kind();
    return kind.marking ? kind.marking(rate_bps, mtu_bytes, parameters) : Marking{};
}

uint64_t
RdmaSettings::BufferOf(double rate_bps) const
{
    if (buffer_bytes > 0)
    {
        return buffer_bytes;
    }
    const Marking marks = MarkingOf(rate_bps);
    const auto all = marks.most > 0 ? static_cast<uint64_t>(marks.all_bytes) : 0;
    return std::max(kDefaultBufferPackets * mtu_bytes, 4 * all);
}

std::map<std::string, std::string>
RdmaSettings::Told() const
{
    std::map<std::string, std::string> told = {
        {"transport", (mltcp ? "mltcp over " : "") + control},
        {"mtu_bytes", std::to_string(mtu_bytes)},
        {"queue", shared_buffer ? "shared_buffer" : "port_buffer"},
        {"buffer_bytes", buffer_bytes == 0 ? "256 packets a port, at least 4 times where all is marked"
                                           : std::to_string(buffer_bytes)},
    };
    for (const auto& [name, option] : AllOptions())
    {
        const std::string said = option.tell(*this);
        if (!said.empty())
        {
            told[name] = said;
        }
    }
    for (const auto& [name, value] : parameters)
    {
        told[control + "." + name] = value == kOmitted ? "chosen by the control" : Text(value);
    }
    return told;
}

std::map<std::string, std::string>
RdmaSettings::About()
{
    std::map<std::string, std::string> told;
    for (const auto& [name, option] : AllOptions())
    {
        told[name] = option.about;
    }
    for (const auto& [control, kind] : AllControls())
    {
        for (const ParameterFacts& one : kind.parameters)
        {
            told[control + "." + one.name] = one.about;
        }
    }
    return told;
}

} // namespace cosim
