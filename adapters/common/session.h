// A session on the wire: what comes in, on gRPC's threads; the simulation, on one of its own.
#pragma once

#include "adapter.h"
#include "frames.h"

#include <cosim/protocol/v1/network_simulator.grpc.pb.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace cosim {

/// Reads the stream all the time, so that Cancel and a broken stream are seen while the simulation runs; gRPC's own threads
/// stay free to answer pings. Where the client can be reached by a socket, what follows Open goes there and back.
class Session : public grpc::ServerBidiReactor<wire::SessionRequest, wire::SessionResponse>
{
  public:
    /// `slot` is true while a session has the simulator, of which there is one in a process. `frames` may be null.
    Session(const Adapter& adapter, std::atomic<bool>& slot, std::unique_ptr<Frames> frames);

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
    /// False where the client closes.
    bool Handle(const Incoming& incoming);
    /// A request is here: the last part of an Advance may be cancelled from now on. With mutex_ held.
    void Expect(const wire::SessionRequest& request);
    void End();
    /// False where no more will come.
    bool Next(Incoming& incoming);
    bool Write(const wire::SessionResponse& response);
    void Open(const wire::Open& open);
    void Take(const wire::Advance& advance, Wall::time_point at);
    void Run(const wire::Advance& advance);

    const Adapter& adapter_;
    std::atomic<bool>& slot_;
    const std::unique_ptr<Frames> frames_;
    /// Whether the request that is answered came by the socket.
    bool beside_ = false;
    wire::SessionRequest reading_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Incoming> incoming_;
    bool ended_ = false;
    bool written_ = false;
    bool write_ok_ = false;
    bool running_ = false;
    uint64_t running_sequence_ = 0;
    /// A Cancel by the stream may overtake its Advance by the socket.
    uint64_t cancelled_sequence_ = 0;
    std::atomic<bool> cancel_{false};

    std::unique_ptr<Seam> seam_;
    uint64_t max_message_bytes_ = 0;
    uint64_t sequence_ = 0;
    bool parts_ = false;
    Wall::time_point began_;
    std::thread worker_;
};

} // namespace cosim
