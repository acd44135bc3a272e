// What happened from one quiet network to the next, so that it can be recalled.
#pragma once

#include "busy_log.h"
#include "meter.h"
#include "state.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cosim {

/// A queue pair, or with this bit the port of a link.
inline constexpr uint32_t kPortBit = uint32_t{1} << 31;

/// A message, in time since the phase's start.
struct PhaseInput
{
    int64_t at;
    /// Which of the starts of this instant, with events of the network in between.
    uint32_t round;
    uint32_t connection;
    uint64_t bytes;
    uint32_t priority;
    double weight;
    /// The states that it was the first to touch.
    uint32_t first_state;
    uint32_t end_state;
    /// When it arrived, and as which of all.
    int64_t end_at;
    uint32_t end_order;

    /// But for the queue pair.
    bool SameMessage(const PhaseInput& other) const
    {
        return bytes == other.bytes && priority == other.priority && weight == other.weight;
    }
};

/// A queue pair or port that the phase touched, as it was at its start and its end.
struct PhaseState
{
    uint32_t entity;
    Words before;
    Words after;
    /// Whether the lazy words were read.
    bool used = false;
    uint64_t retransmitted = 0;
};

/// What a link did meanwhile.
struct PhaseLink
{
    uint32_t link;
    uint64_t sent;
    LinkChange change;
    int64_t paused_ps;
    std::vector<Stretch> busy;
    /// Bytes by which that may be wrong.
    double error = 0;
};

struct Phase
{
    std::vector<PhaseInput> inputs;
    std::vector<PhaseState> states;
    std::vector<PhaseLink> links;
    int64_t end = 0;
};

/// How far apart states may be that are held for the same: 0, every bit of them; else the share by which windows and rates differ.
/// Returns by how much they do; more than `tolerance`: they are not the same.
double Apart(const PhaseState& known, const Words& now, double tolerance);

/// What a state is after a phase of this length that was recalled, where it was `now` before.
Words After(const PhaseState& known, const Words& now, int64_t length);

/// Phases by what they may begin with: their first message, or with a tolerance those so much of the phase's length later.
/// Keeps phases up to a limit of memory, and then no more, and of those of other queue pairs that begin the same the first few.
class PhaseBook
{
  public:
    using Phases = std::vector<std::shared_ptr<const Phase>>;

    explicit PhaseBook(double tolerance)
        : tolerance_(tolerance)
    {
    }

    void Add(std::shared_ptr<const Phase> phase);
    /// Those of the same queue pair.
    Phases Find(const PhaseInput& first) const;
    /// Those of any.
    Phases FindAlike(const PhaseInput& first) const;

  private:
    std::unordered_map<uint64_t, Phases> phases_;
    std::unordered_map<uint64_t, Phases> alike_;
    double tolerance_;
    uint64_t bytes_ = 0;
};

} // namespace cosim
