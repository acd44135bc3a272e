// What a quiet queue pair or port is left with, as words that can be compared, kept and put back at another time.
#pragma once

#include "packet.h"
#include "times.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace cosim {

/// One number of a state. Times and counts of links are absolute, or relative to a moment (Relative).
struct Word
{
    enum class Kind : uint8_t
    {
        kValue,
        /// A window or rate: what decides how fast is sent.
        kSpeed,
        kTime,
        /// Bytes that a link had sent.
        kSent,
        /// A link.
        kLink,
    };

    Kind kind = Kind::kValue;
    /// Only read where the state was `used` (Control::Uses).
    bool lazy = false;
    uint32_t link = 0;
    int64_t bits = 0;
    /// A time that is older than this no longer matters; kNever: it always does.
    int64_t limit = kNever;
};

using Words = std::vector<Word>;

/// Bytes that a link has sent by the moment in question.
using SentBytes = std::function<uint64_t(uint32_t link)>;

/// Words as they look from `moment`: what is too old to matter is kNeverYet.
Words Relative(Words words, int64_t moment, const SentBytes& sent);

/// The reverse, for another moment.
Words Absolute(Words words, int64_t moment, const SentBytes& sent);

/// Walks over the fields of a state, one after the other and always in the same order: to save them, or to put them back.
class StateWalk
{
  public:
    /// Saves to `words`; times become those of the session, `offset` later than ns-3's.
    static StateWalk Save(Words& words, int64_t offset)
    {
        return {words, offset, false};
    }
    static StateWalk Load(Words& words, int64_t offset)
    {
        return {words, offset, true};
    }

    template <typename T>
    void Value(T& field)
    {
        static_assert(sizeof(T) <= sizeof(int64_t));
        Field(Word::Kind::kValue, field);
    }

    /// A window or a rate.
    void Speed(double& field)
    {
        Field(Word::Kind::kSpeed, field);
    }

    /// A time, kNeverYet or kNever; of no matter where it is `limit` or more in the past.
    void Time(int64_t& field, int64_t limit = kNever);

    /// What the newest telemetry said of each hop.
    void Hops(std::vector<HopReport>& hops);

    /// What follows, up to the next call, is only read where `Control::Uses` counts.
    void Lazy(bool lazy)
    {
        lazy_ = lazy;
    }

    bool Loads() const
    {
        return loads_;
    }

  private:
    StateWalk(Words& words, int64_t offset, bool loads)
        : words_(words),
          offset_(offset),
          loads_(loads)
    {
    }

    template <typename T>
    void Field(Word::Kind kind, T& field)
    {
        if (loads_)
        {
            std::memcpy(&field, &words_[at_++].bits, sizeof(T));
            return;
        }
        Word word{kind, lazy_, 0, 0, kNever};
        std::memcpy(&word.bits, &field, sizeof(T));
        words_.push_back(word);
    }

    Words& words_;
    int64_t offset_;
    bool loads_;
    bool lazy_ = false;
    size_t at_ = 0;
};

} // namespace cosim
