#include "own_control.h"

#include "error.h"
#include "mix.h"
#include "world.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace cosim {
namespace {

/// As in cosim's kernel: columns of a connection's own state.
constexpr size_t kStates = 8;
/// The least answers.
constexpr double kLeastPackets = 1e-3;
constexpr double kLeastOfLine = 1e-6;

struct Loaded
{
    OwnControl own;
    ControlKernel call;
    double wire_bytes;
    /// Connections that were made, in an order that is the same each time.
    mutable uint64_t made = 0;
};

/// Asks the function at the end of each round trip, or after the `wait` that it gave; at once after a timeout. Bytes are those on
/// the wire, as in the fluid: each packet counts with its headers.
class Own : public Control
{
  public:
    Own(const Loaded& loaded, const PathFacts& path)
        : Control(path),
          loaded_(loaded),
          per_payload_(loaded.wire_bytes / path.mss_bytes),
          salt_(Mix(loaded.own.seed + ++loaded.made * kGolden))
    {
        row_.first = 1;
        row_.base_rtt = row_.rtt = static_cast<double>(path.base_rtt_ps);
        row_.mss = loaded.wire_bytes;
        row_.line = path.line_bps;
        row_.hops = path.num_links;
        row_.window = path.Bdp();
        row_.rate = path.line_bps;
        Ask(0);
        left_ps_ = ask_at_;
        row_.first = 0;
    }

    void OnAck(const Feedback& feedback) override
    {
        row_.rtt = static_cast<double>(feedback.rtt_ps);
        acked_ += static_cast<double>(feedback.acked_bytes);
        answered_ += 1;
        marked_ += feedback.marked ? 1 : 0;
        // The second half of the round, by what was sent in it.
        later_ = later_ || (feedback.marked && feedback.sequence >= round_begins_ + (round_ends_ - round_begins_) / 2);
        row_.flight = static_cast<double>(feedback.flight) * per_payload_;
        limited_ = feedback.limited;
        row_.sent = static_cast<double>(feedback.sent);
        row_.size = static_cast<double>(feedback.size);
        row_.priority = feedback.priority;
        row_.coflow_sent = feedback.coflow == nullptr ? 0 : static_cast<double>(feedback.coflow->acknowledged);
        row_.coflow_size = feedback.coflow == nullptr ? 0 : static_cast<double>(feedback.coflow->total);
        hops_ = &feedback.hops;
        const bool round = feedback.sequence >= round_ends_;
        if (round)
        {
            round_begins_ = feedback.sequence;
            round_ends_ = feedback.next;
        }
        if (ask_at_ == kNever ? round : feedback.now_ps >= ask_at_)
        {
            Ask(feedback.now_ps);
        }
        // Without a message time stands still for it: neither is it asked, nor is that a part of a round trip.
        is_idle_ = feedback.size == 0;
        left_ps_ = ask_at_ == kNever ? kNever : ask_at_ - feedback.now_ps;
    }

    void OnSent(int64_t now, uint32_t) override
    {
        if (is_idle_)
        {
            begun_ps_ = now;
            ask_at_ = left_ps_ == kNever ? kNever : now + std::max<int64_t>(left_ps_, 1);
            is_idle_ = false;
        }
    }

    void OnLoss(int64_t) override
    {
        row_.lost += 1;
    }

    bool OnTrim(int64_t, uint32_t, uint64_t) override
    {
        row_.lost += 1;
        return true;
    }

    void OnTimeout(int64_t now) override
    {
        row_.timeout = 1;
        row_.lost += 1;
        Ask(now);
    }

    int64_t NextTimer() const override
    {
        return is_idle_ ? kNever : ask_at_;
    }

    void OnTimer(int64_t now) override
    {
        Ask(now);
    }

    void OnWeight() override
    {
        row_.weight = weight;
    }

  private:
    void Ask(int64_t now)
    {
        row_.elapsed = static_cast<double>(now - begun_ps_);
        row_.acked = row_.delivered = acked_ * per_payload_;
        row_.marked = answered_ > 0 ? marked_ / answered_ : 0;
        row_.again = later_ ? 1 : 0;
        row_.limited = loaded_.own.gives_rate ? row_.acked * 8e12 >= 0.9 * row_.rate * row_.elapsed : limited_;
        row_.weight = weight;
        row_.gain = gain;
        row_.wait = 0;
        row_.chance = static_cast<double>(Mix(salt_ + ++asked_ * kGolden) >> 11) * 0x1p-53;
        See();
        loaded_.call(1, &row_, sights_.data(), state_, loaded_.own.parameters.data());
        Take(now);
        row_.lost = row_.timeout = 0;
        acked_ = answered_ = marked_ = 0;
        later_ = false;
        begun_ps_ = now;
    }

    /// Telemetry since the last time.
    void See()
    {
        sights_.assign(std::max<size_t>(path.num_links, 1), HopSight{0, 0, 0});
        if (hops_ == nullptr)
        {
            return;
        }
        for (size_t k = 0; k < std::min(hops_->size(), sights_.size()); ++k)
        {
            const HopReport& hop = (*hops_)[k];
            sights_[k].queue = static_cast<double>(hop.queue_bytes);
            sights_[k].capacity = hop.rate_bps;
            if (k < before_.size() && before_[k].link == hop.link && hop.time_ps > before_[k].time_ps)
            {
                sights_[k].tx = static_cast<double>(hop.tx_bytes - before_[k].tx_bytes) * 8e12 /
                                static_cast<double>(hop.time_ps - before_[k].time_ps);
            }
        }
        before_ = *hops_;
        hops_ = nullptr;
    }

    void Take(int64_t now)
    {
        const double answer = loaded_.own.gives_rate ? row_.rate : row_.window;
        if (!std::isfinite(answer) || !std::isfinite(row_.wait) || row_.wait < 0)
        {
            throw SessionError("SIMULATOR",
                               loaded_.own.function + " in " + loaded_.own.library + " gave " + std::to_string(answer) +
                                   " as " + (loaded_.own.gives_rate ? "rate" : "window") + ", and " + std::to_string(row_.wait) +
                                   " as wait");
        }
        const double least = loaded_.own.gives_rate ? kLeastOfLine * path.line_bps : kLeastPackets * row_.mss;
        if (answer < least)
        {
            throw SessionError("SIMULATOR",
                               loaded_.own.function + " in " + loaded_.own.library + " gave " + std::to_string(answer) +
                                   "; with less than " + std::to_string(least) + " a flow would hardly end");
        }
        if (loaded_.own.gives_rate)
        {
            rate = row_.rate;
        }
        else
        {
            window = row_.window / per_payload_;
            rate = loaded_.own.paced ? std::min(row_.window * 8e12 / row_.rtt, path.line_bps) : path.line_bps;
        }
        ask_at_ = row_.wait > 0 ? now + std::max<int64_t>(static_cast<int64_t>(row_.wait), 1) : kNever;
    }

    const Loaded& loaded_;
    /// Bytes on the wire of a byte of payload, in full packets.
    double per_payload_;
    uint64_t salt_;
    ControlRow row_{};
    double state_[kStates] = {};
    std::vector<HopSight> sights_;
    const std::vector<HopReport>* hops_ = nullptr;
    std::vector<HopReport> before_;
    double acked_ = 0;
    double answered_ = 0;
    double marked_ = 0;
    bool later_ = false;
    bool limited_ = false;
    bool is_idle_ = true;
    int64_t begun_ps_ = 0;
    /// When it is asked next, where it said; while it is idle, how long that is from then on.
    int64_t ask_at_ = kNever;
    int64_t left_ps_ = kNever;
    uint64_t asked_ = 0;
    uint64_t round_begins_ = 0;
    uint64_t round_ends_ = 0;
};

/// The library's full name: a file of the folder that the server was told of.
std::string
Allowed(const std::string& library)
{
    const char* folder = std::getenv("COSIM_CONTROLS");
    if (folder == nullptr || *folder == '\0')
    {
        Invalid("options.own.library", "this server loads no controls: it was started without COSIM_CONTROLS, a folder of them");
    }
    if (library.empty() || library.find('/') != std::string::npos)
    {
        Invalid("options.own.library", "'" + library + "' is not the name of a file in COSIM_CONTROLS");
    }
    return std::string(folder) + "/" + library;
}

ControlKernel
Find(const OwnControl& own)
{
    const std::string file = Allowed(own.library);
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
    {
        Invalid("options.own.library", std::string("can't be loaded: ") + dlerror());
    }
    void* found = dlsym(library, own.function.c_str());
    if (found == nullptr)
    {
        Invalid("options.own.function", own.library + " has no function " + own.function);
    }
    return reinterpret_cast<ControlKernel>(found);
}

} // namespace

ControlKind
LoadOwn(const OwnControl& own, uint32_t wire_bytes)
{
    ControlKind kind;
    kind.about = "a function of a library of the user's";
    kind.telemetry = own.telemetry;
    const auto loaded = std::make_shared<Loaded>(Loaded{own, Find(own), static_cast<double>(wire_bytes), 0});
    kind.make = [loaded](const PathFacts& path, const Parameters&) { return std::make_unique<Own>(*loaded, path); };
    kind.marking = [loaded](double rate_bps, uint32_t, const Parameters&) {
        const auto found = loaded->own.marks.find(rate_bps);
        return found == loaded->own.marks.end() ? Marking{} : found->second;
    };
    return kind;
}

} // namespace cosim
