#include "session.h"

#include "answer.h"
#include "error.h"
#include "take.h"

#include <iostream>

namespace cosim {

Session::Session(const Adapter& adapter, std::atomic<bool>& slot, std::unique_ptr<Frames> frames)
    : adapter_(adapter),
      slot_(slot),
      frames_(std::move(frames))
{
    StartRead(&reading_);
    worker_ = std::thread([this] { Work(); });
}

void
Session::OnReadDone(bool ok)
{
    {
        std::lock_guard lock(mutex_);
        if (!ok)
        {
            End();
            return;
        }
        if (reading_.has_cancel())
        {
            cancelled_sequence_ = reading_.cancel().sequence();
            if (running_ && cancelled_sequence_ == running_sequence_)
            {
                cancel_ = true;
            }
        }
        else
        {
            const bool early = running_;
            if (!early)
            {
                Expect(reading_);
            }
            incoming_.push_back({std::move(reading_), early, Wall::now()});
            changed_.notify_all();
        }
    }
    reading_.Clear();
    StartRead(&reading_);
}

void
Session::OnWriteDone(bool ok)
{
    std::lock_guard lock(mutex_);
    written_ = true;
    write_ok_ = ok;
    changed_.notify_all();
}

void
Session::OnCancel()
{
    std::lock_guard lock(mutex_);
    End();
}

void
Session::End()
{
    ended_ = true;
    cancel_ = true;
    changed_.notify_all();
    if (frames_)
    {
        frames_->End();
    }
}

void
Session::Expect(const wire::SessionRequest& request)
{
    if (request.has_advance() && !request.advance().more())
    {
        running_ = true;
        running_sequence_ = request.advance().sequence();
        cancel_ = ended_ || cancelled_sequence_ == running_sequence_;
    }
}

void
Session::OnDone()
{
    worker_.join();
    delete this;
}

bool
Session::Next(Incoming& incoming)
{
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !incoming_.empty(); });
    if (incoming_.empty())
    {
        return false;
    }
    incoming = std::move(incoming_.front());
    incoming_.pop_front();
    return true;
}

bool
Session::Write(const wire::SessionResponse& response)
{
    if (beside_)
    {
        return frames_->Send(response);
    }
    {
        std::lock_guard lock(mutex_);
        written_ = false;
    }
    StartWrite(&response);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return written_; });
    return write_ok_;
}

void
Session::Work()
{
    grpc::Status status = grpc::Status::OK;
    try
    {
        Serve();
    }
    catch (const SessionError& error)
    {
        status = MakeStatus(error);
    }
    catch (const std::exception& error)
    {
        status = MakeStatus(SessionError("SIMULATOR", error.what()));
    }
    if (!status.ok())
    {
        std::cerr << "session ended: " << status.error_message() << std::endl;
    }
    if (seam_)
    {
        seam_.reset();
        slot_ = false;
    }
    Finish(status);
}

void
Session::Serve()
{
    Incoming incoming;
    while (Next(incoming))
    {
        beside_ = false;
        if (!Handle(incoming))
        {
            return;
        }
        beside_ = true;
        while (frames_ && frames_->Receive(incoming.request))
        {
            incoming.at = Wall::now();
            {
                std::lock_guard lock(mutex_);
                Expect(incoming.request);
            }
            if (!Handle(incoming))
            {
                return;
            }
        }
    }
}

bool
Session::Handle(const Incoming& incoming)
{
    const wire::SessionRequest& request = incoming.request;
    if (incoming.early)
    {
        throw SessionError("STATE", "only Cancel may be sent while an answer is outstanding");
    }
    if (request.has_close())
    {
        return false;
    }
    if (request.has_open() == (seam_ != nullptr))
    {
        throw SessionError("STATE", seam_ ? "the session is open" : "the first request must be Open");
    }
    if (parts_ && !request.has_advance())
    {
        throw SessionError("STATE", "the last part of an Advance has not come");
    }
    if (request.has_open())
    {
        Open(request.open());
    }
    else if (request.has_advance())
    {
        Take(request.advance(), incoming.at);
    }
    else if (request.has_statistics())
    {
        wire::SessionResponse response;
        FillStatistics(*seam_, max_message_bytes_, *response.mutable_statistics());
        Write(response);
    }
    else if (request.has_sample())
    {
        wire::SessionResponse response;
        FillSample(adapter_, *seam_, request.sample(), *response.mutable_sampled());
        Write(response);
    }
    else if (request.has_peek())
    {
        throw SessionError("STATE", adapter_.simulator + " does not peek", {{"request", "peek"}});
    }
    else
    {
        throw SessionError("STATE", "a request without content");
    }
    return true;
}

void
Session::Open(const wire::Open& open)
{
    CheckOpen(open, adapter_);
    if (slot_.exchange(true))
    {
        throw SessionError("OVERLOADED",
                           "another session has the simulator: " + adapter_.simulator + " runs one in a process",
                           {{"limit", "1"}});
    }
    try
    {
        seam_ = adapter_.open(open);
    }
    catch (...)
    {
        slot_ = false;
        throw;
    }
    max_message_bytes_ = open.max_message_bytes();
    wire::SessionResponse response;
    FillOpened(*seam_, *response.mutable_opened());
    Write(response);
}

void
Session::Take(const wire::Advance& advance, Wall::time_point at)
{
    if (advance.sequence() != sequence_ + 1)
    {
        throw SessionError("SEQUENCE",
                           "advance " + std::to_string(advance.sequence()) + " came, " + std::to_string(sequence_ + 1) +
                               " is due",
                           {{"expected", std::to_string(sequence_ + 1)},
                            {"given", std::to_string(advance.sequence())}});
    }
    if (!parts_)
    {
        began_ = at;
    }
    TakeBatch(advance, *seam_);
    parts_ = advance.more();
    if (!parts_)
    {
        Run(advance);
    }
}

void
Session::Run(const wire::Advance& advance)
{
    sequence_ = advance.sequence();
    const int64_t run_before = seam_->RunNs();
    auto deadline = Wall::time_point::max();
    if (advance.wall_budget_us() > 0)
    {
        // Beyond an hour a budget is none: the clock's own range must not be left.
        constexpr uint64_t hour_us = 3'600'000'000;
        deadline = began_ + std::chrono::microseconds(std::min(advance.wall_budget_us(), hour_us));
    }
    const Advanced done = seam_->Advance(std::min(advance.horizon_ps(), kNever), deadline, &cancel_);
    std::vector<wire::SessionResponse> parts = MakeAdvanced(*seam_, done, sequence_, max_message_bytes_);
    wire::Advanced& tail = *parts.back().mutable_advanced();
    tail.set_simulator_ns(static_cast<uint64_t>(seam_->RunNs() - run_before));
    const auto wall = Wall::now() - began_;
    tail.set_server_ns(static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count()));
    {
        // From here on the client may have its answer, and send what comes next.
        std::lock_guard lock(mutex_);
        running_ = false;
    }
    for (const wire::SessionResponse& part : parts)
    {
        if (!Write(part))
        {
            return;
        }
    }
}

} // namespace cosim
