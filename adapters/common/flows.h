// The flows of a session: what they wait for, when they start, when they ended.
#pragma once

#include "times.h"

#include <array>
#include <cstdint>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

namespace cosim {

/// Time of something that has not happened.
inline constexpr int64_t kUnknown = -1;

/// What a flow is given with.
struct FlowSpec
{
    int64_t key_high = 0;
    int64_t key_low = 0;
    int64_t size_bytes = 0;
    int64_t reaction_ps = 0;
    int64_t delay_ps = 0;
    /// Number of its connection; kMark where source and destination are the same.
    uint32_t connection = 0;
    uint32_t coflow = 0;
    /// Served first: 0.
    uint32_t priority = 0;
    /// Share of a link relative to others.
    double weight = 1;
};

inline constexpr uint32_t kMark = ~uint32_t{0};

enum class Wait : uint8_t
{
    kCompletion,
    kStart,
};

/// A start that is certain; flows that start at one instant are taken in the order (cause, key).
struct Start
{
    int64_t time;
    int64_t cause;
    int64_t key_high;
    int64_t key_low;
    uint64_t id;
};

/// A flow that arrived; `cause` is when that became certain.
struct Completion
{
    uint64_t id;
    int64_t start;
    int64_t time;
    int64_t cause;
};

/// The flows of a session. What has completed is dropped, in chunks of successive ids, once the client has promised that
/// nothing will wait for it any more (Forget): memory follows what is in flight.
///
/// Times flow ahead: as soon as a start or an end is certain it is passed on to what waits for it. That is sound because
/// it is only ever used in max(dependencies) + delay, and it makes what is released here and what is given from outside
/// at the same times one and the same.
class Flows
{
  public:
    /// Adds the next flow; `waits` names (id, what of it). Returns its id.
    uint64_t Add(const FlowSpec& spec, const std::vector<std::pair<uint64_t, Wait>>& waits);

    /// Makes a flow's start certain.
    void SetStart(uint64_t id, int64_t time, int64_t cause);

    /// A flow arrived. Its times stay until nothing can wait for them.
    void SetEnd(uint64_t id, int64_t time);

    /// No flow given from now on waits for one of a lower id.
    void Forget(uint64_t oldest);

    /// The lowest id that a new flow may wait for.
    uint64_t Oldest() const
    {
        return oldest_;
    }

    /// Whether the flow was given without dependencies, and has no start yet.
    bool AwaitsStart(uint64_t id) const;

    const FlowSpec& Spec(uint64_t id) const;

    int64_t StartOf(uint64_t id) const
    {
        return At(id).start;
    }

    uint64_t Count() const
    {
        return count_;
    }
    uint64_t NumOpen() const
    {
        return open_;
    }
    uint64_t NumStarted() const
    {
        return started_;
    }

    /// Earliest start that is certain and not taken; kNever if there is none.
    int64_t NextStart() const;

    /// Takes the starts at the earliest instant, in order.
    void TakeStarts(std::vector<Start>& out);

  private:
    struct Record
    {
        FlowSpec spec;
        int64_t start = kUnknown;
        int64_t end = kUnknown;
        int64_t ready = 0;
        uint32_t waits = 0;
        uint32_t first_edge = 0;
        bool dependent = false;
    };

    struct Edge
    {
        uint64_t to;
        uint32_t next;
        Wait wait;
    };

    struct Later
    {
        bool operator()(const Start& a, const Start& b) const;
    };

    static constexpr uint64_t kChunk = 1024;

    struct Chunk
    {
        std::array<Record, kChunk> records;
        uint64_t left = kChunk;
    };

    Record& At(uint64_t id)
    {
        return chunks_[id / kChunk]->records[id % kChunk];
    }
    const Record& At(uint64_t id) const
    {
        return chunks_[id / kChunk]->records[id % kChunk];
    }

    void DropIfDone(uint64_t chunk);

    void NoteStart(uint64_t id, int64_t time, int64_t cause);
    /// Works through what is certain but not passed on. A list, not a recursion: chains of starts can be long.
    void Drain();
    void PassOn(uint64_t id, Wait what, int64_t time);
    uint32_t NewEdge(uint64_t to, uint32_t next, Wait wait);

    struct Certain
    {
        uint64_t id;
        Wait what;
        int64_t time;
    };

    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::vector<Certain> work_;
    std::vector<Edge> edges_{1}; // 0 ends a list
    uint32_t free_edge_ = 0;
    std::priority_queue<Start, std::vector<Start>, Later> queue_;
    uint64_t count_ = 0;
    uint64_t oldest_ = 0;
    uint64_t open_ = 0;
    uint64_t started_ = 0;
};

} // namespace cosim
