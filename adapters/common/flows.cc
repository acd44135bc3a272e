#include "flows.h"

#include <algorithm>
#include <tuple>

namespace cosim {

bool
Flows::Later::operator()(const Start& a, const Start& b) const
{
    return std::tie(a.time, a.cause, a.key_high, a.key_low, a.id) >
           std::tie(b.time, b.cause, b.key_high, b.key_low, b.id);
}

uint32_t
Flows::NewEdge(uint64_t to, uint32_t next, Wait wait)
{
    if (free_edge_ == 0)
    {
        edges_.push_back({to, next, wait});
        return static_cast<uint32_t>(edges_.size() - 1);
    }
    const uint32_t edge = free_edge_;
    free_edge_ = edges_[edge].next;
    edges_[edge] = {to, next, wait};
    return edge;
}

uint64_t
Flows::Add(const FlowSpec& spec, const std::vector<std::pair<uint64_t, Wait>>& waits)
{
    const uint64_t id = count_++;
    if (id % kChunk == 0)
    {
        chunks_.push_back(std::make_unique<Chunk>());
    }
    ++open_;
    Record& record = At(id);
    record.spec = spec;
    record.dependent = !waits.empty();
    for (const auto& [other, wait] : waits)
    {
        Record& before = At(other);
        const int64_t known = wait == Wait::kStart ? before.start : before.end;
        if (known != kUnknown)
        {
            record.ready = std::max(record.ready, known);
            continue;
        }
        before.first_edge = NewEdge(id, before.first_edge, wait);
        ++record.waits;
    }
    if (record.dependent && record.waits == 0)
    {
        SetStart(id, record.ready + spec.delay_ps, record.ready);
    }
    return id;
}

bool
Flows::AwaitsStart(uint64_t id) const
{
    const auto& chunk = chunks_[id / kChunk];
    return chunk && At(id).start == kUnknown && !At(id).dependent;
}

const FlowSpec&
Flows::Spec(uint64_t id) const
{
    return At(id).spec;
}

void
Flows::SetStart(uint64_t id, int64_t time, int64_t cause)
{
    NoteStart(id, time, cause);
    Drain();
}

void
Flows::NoteStart(uint64_t id, int64_t time, int64_t cause)
{
    At(id).start = time;
    const FlowSpec& spec = Spec(id);
    queue_.push({time, cause, spec.key_high, spec.key_low, id});
    work_.push_back({id, Wait::kStart, time});
}

void
Flows::SetEnd(uint64_t id, int64_t time)
{
    At(id).end = time;
    work_.push_back({id, Wait::kCompletion, time});
    Drain();
    --open_;
    --chunks_[id / kChunk]->left;
    DropIfDone(id / kChunk);
}

void
Flows::DropIfDone(uint64_t chunk)
{
    if (chunks_[chunk] && chunks_[chunk]->left == 0 && (chunk + 1) * kChunk <= oldest_)
    {
        chunks_[chunk].reset();
    }
}

void
Flows::Forget(uint64_t oldest)
{
    const uint64_t before = oldest_ / kChunk;
    oldest_ = std::max(oldest_, std::min(oldest, count_));
    for (uint64_t chunk = before; chunk < oldest_ / kChunk; ++chunk)
    {
        DropIfDone(chunk);
    }
}

void
Flows::Drain()
{
    while (!work_.empty())
    {
        const auto [id, what, time] = work_.back();
        work_.pop_back();
        PassOn(id, what, time);
    }
}

void
Flows::PassOn(uint64_t id, Wait what, int64_t time)
{
    uint32_t* at = &At(id).first_edge;
    while (*at != 0)
    {
        Edge& edge = edges_[*at];
        if (edge.wait != what)
        {
            at = &edge.next;
            continue;
        }
        const uint32_t taken = *at;
        *at = edge.next;
        edge.next = free_edge_;
        free_edge_ = taken;
        Record& after = At(edge.to);
        after.ready = std::max(after.ready, time);
        if (--after.waits == 0)
        {
            NoteStart(edge.to, after.ready + after.spec.delay_ps, after.ready);
        }
    }
}

int64_t
Flows::NextStart() const
{
    return queue_.empty() ? kNever : queue_.top().time;
}

void
Flows::TakeStarts(std::vector<Start>& out)
{
    const int64_t time = NextStart();
    while (!queue_.empty() && queue_.top().time == time)
    {
        out.push_back(queue_.top());
        queue_.pop();
        ++started_;
    }
}

} // namespace cosim
