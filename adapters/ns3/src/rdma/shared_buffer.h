// The packet memory of a switch.
#pragma once

#include "packet.h"

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace cosim {

/// What a switch's memory is, in bytes.
struct BufferFacts
{
    uint64_t room = 0;
    bool shared = true;
    bool lossless = false;
    double alpha = 1;
    /// Of one link and class in, with PFC; 0: by alpha.
    uint64_t pause_bytes = 0;
    uint32_t wire_bytes = 0;

    bool operator==(const BufferFacts& other) const
    {
        return room == other.room && shared == other.shared && lossless == other.lossless && alpha == other.alpha &&
               pause_bytes == other.pause_bytes && wire_bytes == other.wire_bytes;
    }
};

/// Of each link, which of its destination's links in it is, and which of its source's links out.
struct LinkPlaces
{
    std::vector<uint32_t> in;
    std::vector<uint32_t> out;
};

/// A link in, and what PFC keeps for it.
struct LinkIn
{
    uint32_t link = 0;
    uint64_t headroom = 0;
};

/// Lossy: a packet is taken where its queue has less than alpha times the free room (Choudhury and Hahne 1998,
/// doi:10.1109/90.664262), or less than its port's own room. Lossless: where what came in over its link in its class
/// reaches such a threshold, that link is stopped (IEEE 802.1Qbb) and what still comes goes to headroom; only what finds
/// that full is lost. Acknowledgements and pause frames take no room.
///
/// As in the simulator of HPCC's authors (Li et al. 2019, doi:10.1145/3341302.3342085); not modelled: room reserved for
/// each port below the thresholds, cells.
class SharedBuffer
{
  public:
    using Pause = std::function<void(uint32_t link, uint32_t priority, bool stop)>;

    /// `in` and `out` are in the order of `places`, which lives longer.
    SharedBuffer(const BufferFacts& facts,
                 const std::vector<LinkIn>& in,
                 const std::vector<uint32_t>& out,
                 const LinkPlaces& places,
                 Pause pause);

    /// Takes a packet that wants to leave by a link, whose queue of its class (and all classes) is so long; false: dropped.
    bool Admit(const Packet& packet, uint32_t out, uint64_t queue_bytes, uint64_t port_bytes);
    /// A packet that was taken leaves by a link.
    void Leave(const Packet& packet, uint32_t out);

    /// Whether the class of a link in is stopped.
    bool Stopped(uint32_t link, uint32_t priority) const;
    /// Bytes of a link in and class that wait for a link out.
    uint64_t Between(uint32_t in, uint32_t out, uint32_t priority) const;
    const std::vector<uint32_t>& LinksOut() const
    {
        return out_;
    }
    size_t NumIn() const
    {
        return in_.size();
    }
    /// Of all links in, for one class.
    uint64_t Headroom() const
    {
        return headroom_;
    }
    const BufferFacts& Facts() const
    {
        return facts_;
    }
    /// Keeps headroom for so many classes.
    void UseClasses(uint32_t num_classes);

  private:
    struct Held
    {
        uint64_t shared = 0;
        uint64_t headroom = 0;
        bool stopped = false;
        /// Of each link out.
        std::vector<uint64_t> between;
    };

    double Threshold() const;
    bool AdmitLossless(const Packet& packet, Held& held, uint64_t headroom);

    BufferFacts facts_;
    std::vector<LinkIn> in_;
    std::vector<uint32_t> out_;
    const LinkPlaces& places_;
    Pause pause_;
    /// [place of the link in][class]
    std::vector<std::array<Held, kMaxClasses>> held_;
    uint64_t headroom_ = 0;
    uint32_t num_classes_ = 1;
    uint64_t used_ = 0;
};

} // namespace cosim
