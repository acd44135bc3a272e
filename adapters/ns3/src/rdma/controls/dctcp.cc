// DCTCP's law on a queue pair: the window is cut in proportion to the share of bytes marked.
//
// Once a round trip: alpha <- (1 - g) alpha + g F, F the share marked. The first mark of a round trip cuts the window by
// alpha / 2, and it does not grow until the next; slow start doubles it each round trip and ends with the first mark.
// Ports mark everything above K. A loss halves the window, a timeout leaves one packet.
//
// M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, doi:10.1145/1851182.1851192; RFC 8257. Defaults are theirs; a
// first window of 10 packets (RFC 6928). Not TCP: each packet is acknowledged at once and says its own mark, acknowledgements
// have a class of their own, losses are repaired as queue pairs do.

#include "control.h"
#include "state.h"

#include <algorithm>

namespace cosim {
namespace {

class Dctcp : public Control
{
  public:
    Dctcp(const PathFacts& path, const Parameters& p)
        : Control(path),
          g_(p.at("g"))
    {
        window = p.at("initial_window") * path.mss_bytes;
    }

    void OnAck(const Feedback& feedback) override
    {
        acked_ += static_cast<double>(feedback.acked_bytes);
        marked_ += feedback.marked ? static_cast<double>(feedback.acked_bytes) : 0;
        if (feedback.sequence >= round_ends_)
        {
            EndRound(feedback.next);
        }
        if (feedback.marked && !cut_)
        {
            Cut(1 - alpha_ / 2);
        }
        else if (!cut_ && feedback.limited)
        {
            const auto acked = static_cast<double>(feedback.acked_bytes);
            window += window < threshold_ ? acked : gain * path.mss_bytes * acked / window;
        }
    }

    void OnLoss(int64_t) override
    {
        Cut(0.5);
    }

    void OnTimeout(int64_t) override
    {
        threshold_ = std::max(window / 2, 2.0 * path.mss_bytes);
        window = path.mss_bytes;
    }

    void State(StateWalk& walk) override
    {
        walk.Value(alpha_);
        walk.Value(threshold_);
        walk.Value(acked_);
        walk.Value(marked_);
        walk.Value(cut_);
    }

  private:
    void EndRound(uint64_t next)
    {
        alpha_ += g_ * ((acked_ > 0 ? marked_ / acked_ : 0) - alpha_);
        acked_ = marked_ = 0;
        round_ends_ = next;
        cut_ = false;
    }

    void Cut(double by)
    {
        window = threshold_ = std::max(window * by, 2.0 * path.mss_bytes);
        cut_ = true;
    }

    double g_;
    double alpha_ = 1;
    double threshold_ = 1e18;
    double acked_ = 0;
    double marked_ = 0;
    bool cut_ = false;
    uint64_t round_ends_ = 0;
};

Marking
Marks(double, uint32_t mtu_bytes, const Parameters& p)
{
    const double k = p.at("threshold") == kOmitted ? 65.0 * mtu_bytes : p.at("threshold");
    return {k, k, 1};
}

const ControlEntry entry(
    "dctcp",
    KindOf<Dctcp>(
        "the window is cut by the share of bytes marked",
        {
            {"g", 1.0 / 16, 1e-9, 1, "weight of the newest round in alpha"},
            {"initial_window", 10, 1e-3, 1e6, "first window, packets"},
            {"threshold", kOmitted, 1, 1e12, "K, where ports mark, bytes; 65 packets where it is not given"},
        })
        .Marks(Marks));

} // namespace
} // namespace cosim
