// A session on the wire: what comes in, on gRPC's threads; the simulation, on one of its own.
#pragma once

#include "adapter.h"

#include <cosim/protocol/v1/network_simulator.grpc.pb.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace cosim {

/// Reads all the time, so that Cancel and a broken stream are seen while the simulation runs; gRPC's own threads stay free
/// to answer pings.
class Session : public grpc::ServerBidiReactor<wire::SessionRequest, wire::SessionResponse>
{
  public:
    /// `slot` is true while a session has the simulator, of which there is one in a process.
    Session(const Adapter& adapter, std::atomic<bool>& slot);

    void OnReadDone(bool ok) override;
    void OnWriteDone(bool ok) override;
    void OnCancel() override;
    void OnDone() override;

  private:
    struct Incoming
    {
        wire::SessionRequest request;
        /// It came while an answer was outstanding.
        bool early;
        Wall::time_point at;
    };

    void Work();
    /// Ends when the client closes, or the stream breaks. Throws SessionError.
    void Serve();
    /// False where no more will come.
    bool Next(Incoming& incoming);
    bool Write(const wire::SessionResponse& response);
    void Open(const wire::Open& open);
    void Take(const wire::Advance& advance, Wall::time_point at);
    void Run(const wire::Advance& advance);

    const Adapter& adapter_;
    std::atomic<bool>& slot_;
    wire::SessionRequest reading_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Incoming> incoming_;
    bool ended_ = false;
    bool written_ = false;
    bool write_ok_ = false;
    bool running_ = false;
    uint64_t running_sequence_ = 0;
    std::atomic<bool> cancel_{false};

    std::unique_ptr<Seam> seam_;
    uint64_t max_message_bytes_ = 0;
    uint64_t sequence_ = 0;
    bool parts_ = false;
    Wall::time_point began_;
    std::thread worker_;
};

} // namespace cosim
