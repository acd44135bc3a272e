#include "settling.h"

#include <algorithm>
#include <cmath>

namespace cosim {
namespace {

/// Round trips from a change to the first look.
constexpr int64_t kFirst = 4;
constexpr int64_t kLongest = 64;
/// Packets beside those in flight that are left of a message, so that its end is simulated.
constexpr double kLeft = 8;

} // namespace

void
Settling::Restart(int64_t now)
{
    began_ = now;
    next_ = now + kFirst * rtt_ps_;
    looks_ = 0;
    left_ = 0;
}

bool
Settling::Compare(Under& now, const Under& before) const
{
    const double mss = fabric_.Payload();
    const auto bytes = static_cast<double>(now.delivered - before.delivered);
    const double grown = std::abs(static_cast<double>(now.in_flight) - static_cast<double>(before.in_flight));
    const double most = std::max(now.bytes_per_ps, before.bytes_per_ps);
    now.drift = most > 0 ? std::abs(now.bytes_per_ps - before.bytes_per_ps) / most : 2;
    if (now.speed != before.speed)
    {
        now.drift = std::max(now.drift, mss / std::max(bytes, 1.0));
    }
    return looks_ >= 2 && !fabric_.SenderOf(now.pair).Timed() && now.drift <= tolerance_ && grown <= tolerance_ * bytes + 2 * mss;
}

void
Settling::Look(int64_t now, const std::vector<uint32_t>& pairs)
{
    std::vector<Under> found;
    for (const uint32_t pair : pairs)
    {
        const Sender& sender = fabric_.SenderOf(pair);
        if (!sender.Idle())
        {
            found.push_back({pair, sender.Delivered(), sender.DeliveredAt(), sender.InFlight(), sender.Speed(), 0, 2, 0});
        }
    }
    bool settled = looks_ > 0 && found.size() == under_.size() && !found.empty();
    for (size_t k = 0; k < found.size() && looks_ > 0 && found.size() == under_.size(); ++k)
    {
        const auto time = static_cast<double>(found[k].delivered_at - under_[k].delivered_at);
        found[k].bytes_per_ps = static_cast<double>(found[k].delivered - under_[k].delivered) / std::max(time, 1.0);
        settled = found[k].pair == under_[k].pair && Compare(found[k], under_[k]) && settled;
    }
    under_ = std::move(found);
    left_ = settled ? kLongest * (now - began_) : 0;
    for (const Under& one : under_)
    {
        const double left = std::max(tolerance_ - drifted_[one.pair], 0.0);
        const double until = left * static_cast<double>(now - looked_) / std::max(one.drift, 1e-9);
        left_ = static_cast<int64_t>(std::min(static_cast<double>(left_), until));
    }
    span_ = now - looked_;
    looked_ = now;
    next_ = now + (now - began_);
    ++looks_;
}

int64_t
Settling::Longest() const
{
    double most = static_cast<double>(left_);
    for (size_t k = 0; k < under_.size() && most > 0; ++k)
    {
        const Sender& sender = fabric_.SenderOf(under_[k].pair);
        const double room = static_cast<double>(sender.Unsent()) - static_cast<double>(sender.InFlight()) -
                            kLeft * fabric_.Payload();
        most = std::min(most, std::max(room, 0.0) / under_[k].bytes_per_ps);
    }
    return static_cast<int64_t>(most);
}

std::vector<Settling::Share>
Settling::Take(int64_t time)
{
    left_ -= time;
    std::vector<Share> shares;
    for (Under& one : under_)
    {
        one.part += one.bytes_per_ps * static_cast<double>(time);
        const double whole = std::floor(one.part);
        const double error = one.drift * static_cast<double>(time) / static_cast<double>(span_);
        drifted_[one.pair] += error;
        one.part -= whole;
        one.delivered += static_cast<uint64_t>(whole);
        shares.push_back({one.pair, static_cast<uint64_t>(whole), error});
    }
    return shares;
}

} // namespace cosim
