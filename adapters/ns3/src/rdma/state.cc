#include "state.h"

namespace cosim {

Words
Relative(Words words, int64_t moment, const SentBytes& sent)
{
    for (Word& word : words)
    {
        if (word.kind == Word::Kind::kSent)
        {
            word.bits -= static_cast<int64_t>(sent(word.link));
        }
        else if (word.kind == Word::Kind::kTime && word.bits != kNeverYet && word.bits != kNever)
        {
            word.bits = word.limit != kNever && moment - word.bits >= word.limit ? kNeverYet : word.bits - moment;
        }
    }
    return words;
}

Words
Absolute(Words words, int64_t moment, const SentBytes& sent)
{
    for (Word& word : words)
    {
        if (word.kind == Word::Kind::kSent)
        {
            word.bits += static_cast<int64_t>(sent(word.link));
        }
        else if (word.kind == Word::Kind::kTime && word.bits != kNeverYet && word.bits != kNever)
        {
            word.bits += moment;
        }
    }
    return words;
}

void
StateWalk::Time(int64_t& field, int64_t limit)
{
    const bool loads = loads_;
    int64_t session = field == kNeverYet || field == kNever ? field : field + offset_;
    Field(Word::Kind::kTime, session);
    if (loads)
    {
        field = session == kNeverYet || session == kNever ? session : session - offset_;
    }
    else
    {
        words_.back().limit = limit;
    }
}

void
StateWalk::Hops(std::vector<HopReport>& hops)
{
    auto count = static_cast<uint64_t>(hops.size());
    Value(count);
    hops.resize(count);
    for (HopReport& hop : hops)
    {
        Field(Word::Kind::kLink, hop.link);
        Time(hop.time_ps);
        Field(Word::Kind::kSent, hop.tx_bytes);
        if (!loads_)
        {
            words_.back().link = hop.link;
        }
        Value(hop.queue_bytes);
        Value(hop.rate_bps);
    }
}

} // namespace cosim
