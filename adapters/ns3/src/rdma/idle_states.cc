#include "idle_states.h"

namespace cosim {

void
IdleStates::Walk(uint32_t entity, StateWalk& walk)
{
    if ((entity & kPortBit) != 0)
    {
        fabric_.PortOf(entity & ~kPortBit).State(walk);
        return;
    }
    fabric_.SenderOf(entity).State(walk);
    fabric_.ReceiverOf(entity).State(walk);
}

Words
IdleStates::Of(uint32_t entity)
{
    const Idle& idle = idle_[entity];
    if (idle.recalled)
    {
        return idle.words;
    }
    Words words;
    StateWalk walk = StateWalk::Save(words, idle.offset);
    Walk(entity, walk);
    return words;
}

Words
IdleStates::From(uint32_t entity, int64_t moment, const SentBytes& sent)
{
    return Relative(Of(entity), moment, sent);
}

void
IdleStates::Bring(uint32_t entity, int64_t offset)
{
    Idle& idle = idle_[entity];
    if (!idle.recalled && idle.offset == offset)
    {
        return;
    }
    Words words = Of(entity);
    StateWalk walk = StateWalk::Load(words, offset);
    Walk(entity, walk);
    Simulated(entity, offset);
}

void
IdleStates::Simulated(uint32_t entity, int64_t offset)
{
    idle_[entity] = {false, offset, {}};
}

void
IdleStates::Set(uint32_t entity, const Words& words, int64_t moment, const SentBytes& sent)
{
    idle_[entity] = {true, 0, Absolute(words, moment, sent)};
}

} // namespace cosim
