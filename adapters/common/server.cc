#include "adapter.h"

#include "answer.h"
#include "error.h"
#include "frames.h"
#include "session.h"
#include "take.h"

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

namespace cosim {
namespace {

class Service final : public wire::NetworkSimulatorService::CallbackService
{
  public:
    explicit Service(const Adapter& adapter)
        : adapter_(adapter)
    {
    }

    grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                       const wire::DescribeRequest* request,
                                       wire::DescribeResponse* response) override
    {
        grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
        grpc::Status status = grpc::Status::OK;
        try
        {
            CheckVersion(request->version());
            FillDescription(adapter_, *response);
        }
        catch (const SessionError& error)
        {
            status = MakeStatus(error);
        }
        reactor->Finish(status);
        return reactor;
    }

    grpc::ServerBidiReactor<wire::SessionRequest, wire::SessionResponse>* Session(
        grpc::CallbackServerContext* context) override
    {
        const auto& metadata = context->client_metadata();
        const auto named = metadata.find(kSocketMetadata);
        std::unique_ptr<Frames> frames;
        if (named != metadata.end())
        {
            frames = Frames::Connect(std::string(named->second.data(), named->second.size()));
        }
        return new cosim::Session(adapter_, slot_, std::move(frames));
    }

  private:
    const Adapter& adapter_;
    std::atomic<bool> slot_{false};
};

constexpr const char* kUnix = "unix:";

bool
IsUnix(const std::string& address)
{
    return address.rfind(kUnix, 0) == 0;
}

/// Whether only this machine can reach an address.
bool
IsLocal(const std::string& address)
{
    if (IsUnix(address))
    {
        return true;
    }
    const std::string host = address.substr(0, address.rfind(':'));
    return host == "localhost" || host == "[::1]" || host.rfind("127.", 0) == 0;
}

int
Fail(const Adapter& adapter, const std::string& message)
{
    std::cerr << adapter.program << ": " << message << std::endl;
    return 2;
}

} // namespace

int
Serve(const Adapter& adapter, int argc, char** argv)
{
    std::string address = "127.0.0.1:0";
    for (int k = 1; k < argc; ++k)
    {
        if (std::string(argv[k]) != "--address" || k + 1 == argc)
        {
            return Fail(adapter, "usage: " + adapter.program + " [--address unix:/path | host:port]");
        }
        address = argv[++k];
    }
    if (!IsLocal(address))
    {
        return Fail(adapter,
                    address + " is not on this machine, and this adapter has no TLS: take unix:/path or "
                              "127.0.0.1:port");
    }

    // Signals go to this thread alone, which waits for them at the end.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    Service service(adapter);
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
    builder.SetMaxSendMessageSize(static_cast<int>(kMaxMessageBytes));
    builder.AddChannelArgument("grpc.http2.min_ping_interval_without_data_ms", 1000);
    builder.AddChannelArgument("grpc.http2.max_ping_strikes", 0);
    builder.AddChannelArgument("grpc.keepalive_permit_without_calls", 1);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (!server || (port == 0 && !IsUnix(address)))
    {
        return Fail(adapter, "can't listen on " + address);
    }
    server->GetHealthCheckService()->SetServingStatus("cosim.protocol.v1.NetworkSimulatorService", true);
    if (!IsUnix(address))
    {
        address = address.substr(0, address.rfind(':') + 1) + std::to_string(port);
    }
    std::cout << "LISTENING " << address << std::endl;

    int signal = 0;
    sigwait(&signals, &signal);
    if (IsUnix(address))
    {
        unlink(address.c_str() + std::string(kUnix).size());
    }
    // A simulation in progress is not waited for.
    std::_Exit(0);
}

} // namespace cosim
