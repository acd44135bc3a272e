// Congestion controls: what decides how fast a queue pair sends. Each is a file in controls/.
#pragma once

#include "coflow.h"
#include "marking.h"
#include "packet.h"
#include "times.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cosim {

/// A queue pair's way, as its control sees it.
struct PathFacts
{
    /// Of the sender's port.
    double line_bps = 0;
    /// Without queues, of a full packet and its acknowledgement.
    int64_t base_rtt_ps = 0;
    uint32_t num_links = 0;
    /// Payload of a full packet.
    uint32_t mss_bytes = 0;

    /// Bandwidth times delay, bytes.
    double Bdp() const
    {
        return line_bps * static_cast<double>(base_rtt_ps) / 8e12;
    }
};

/// Bytes: more than a control ever lets under way.
inline constexpr double kNoWindow = 1e18;

/// What an acknowledgement brings.
struct Feedback
{
    int64_t now_ps;
    /// Of the data that it answers.
    int64_t rtt_ps;
    /// Payload acknowledged by it that was not before.
    uint64_t acked_bytes;
    /// Whether the data that it answers was marked.
    bool marked;
    /// Offset of the data that it answers, and of what the sender sends next: a round trip has passed when the first gets to
    /// where the second was.
    uint64_t sequence;
    uint64_t next;
    /// Whether the window was what held the sender.
    bool limited;
    const std::vector<HopReport>& hops;
    /// Payload under way when it has been taken; of the message under way, sent and in all; its class and coflow.
    uint64_t flight = 0;
    uint64_t sent = 0;
    uint64_t size = 0;
    uint32_t priority = 0;
    const Coflow* coflow = nullptr;
};

/// Parameters by name, in ps, bytes and bits per second; kOmitted where nobody said and the control chooses.
using Parameters = std::map<std::string, double>;
inline constexpr double kOmitted = -1;

/// The control of one queue pair: sets `window` and `rate` whenever it is told something.
class StateWalk;

class Control
{
  public:
    explicit Control(const PathFacts& path)
        : path(path),
          rate(path.line_bps)
    {
    }
    virtual ~Control() = default;
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    virtual void OnAck(const Feedback&)
    {
    }
    /// A congestion notification came (only where the kind says `notifies`).
    virtual void OnNotification(int64_t /*now*/)
    {
    }
    /// Payload left.
    virtual void OnSent(int64_t /*now*/, uint32_t /*bytes*/)
    {
    }
    /// Packets were lost, as the other side says: once for all that were under way.
    virtual void OnLoss(int64_t /*now*/)
    {
    }
    /// A packet came without its payload, as switches that trim hand it on; so much other payload is under way. False: it is
    /// a loss as others are (OnLoss).
    virtual bool OnTrim(int64_t /*now*/, uint32_t /*bytes*/, uint64_t /*in_flight*/)
    {
        return false;
    }
    /// Nothing came back for a whole timeout.
    virtual void OnTimeout(int64_t /*now*/)
    {
    }
    /// When OnTimer is to be called; kNever: not at all. Asked after each call.
    virtual int64_t NextTimer() const
    {
        return kNever;
    }
    virtual void OnTimer(int64_t /*now*/)
    {
    }
    /// A message with another weight begins.
    virtual void OnWeight()
    {
    }

    /// Walks over every field that what is told changes, window, rate and weight left out; for fast_forward, which is refused
    /// where a kind doesn't say. Offsets of data need no word: what is quiet has had all of its data acknowledged.
    virtual void State(StateWalk&)
    {
    }
    /// How often that part of the state was read which State calls lazy.
    virtual uint64_t Uses() const
    {
        return 0;
    }

    const PathFacts path;
    /// Bytes that may be under way.
    double window = kNoWindow;
    /// Bits per second at which packets leave.
    double rate;
    /// What growth is multiplied by: 1, or MLTCP's F(r).
    double gain = 1;
    /// The job's.
    double weight = 1;
};

/// One parameter of a kind of control.
struct ParameterFacts
{
    std::string name;
    double value;
    double low;
    double high;
    std::string about;
};

/// What a session knows of a kind of control.
struct ControlKind
{
    std::string about;
    std::vector<ParameterFacts> parameters;
    std::function<std::unique_ptr<Control>(const PathFacts&, const Parameters&)> make;
    /// What ports mark where nobody says (rate of the port, MTU); empty: nothing.
    std::function<Marking(double rate_bps, uint32_t mtu_bytes, const Parameters&)> marking;
    bool telemetry = false;
    bool notifies = false;
    bool lossless = false;
    bool trims = false;
    /// Whether it has State.
    bool tells_state = false;

    ControlKind Marks(decltype(marking) by) const
    {
        ControlKind kind = *this;
        kind.marking = std::move(by);
        return kind;
    }
    /// Switches write telemetry into its data.
    ControlKind Telemetry() const
    {
        ControlKind kind = *this;
        kind.telemetry = true;
        return kind;
    }
    /// Receivers answer marked data with notifications, at most one in its parameter cnp_interval.
    ControlKind Notifies() const
    {
        ControlKind kind = *this;
        kind.notifies = true;
        return kind;
    }
    /// Priority flow control is on where nobody says.
    ControlKind Lossless() const
    {
        ControlKind kind = *this;
        kind.lossless = true;
        return kind;
    }
    /// Switches cut packets without room down to their headers where nobody says.
    ControlKind Trims() const
    {
        ControlKind kind = *this;
        kind.trims = true;
        return kind;
    }
};

/// Every kind by its name.
const std::map<std::string, ControlKind>& AllControls();

/// Makes a kind known.
struct ControlEntry
{
    ControlEntry(const std::string& name, ControlKind kind);
};

/// A class with a constructor (const PathFacts&, const Parameters&), for
/// `const ControlEntry entry("name", KindOf<Class>("about", {parameters}));` in the control's file.
template <typename Class>
ControlKind
KindOf(std::string about, std::vector<ParameterFacts> parameters)
{
    ControlKind kind;
    kind.about = std::move(about);
    kind.parameters = std::move(parameters);
    kind.make = [](const PathFacts& path, const Parameters& p) { return std::make_unique<Class>(path, p); };
    kind.tells_state = !std::is_same_v<decltype(&Class::State), void (Control::*)(StateWalk&)>;
    return kind;
}

} // namespace cosim
