// A session's messages over a Unix socket beside its stream: "The socket" in proto/cosim/protocol/v1/README.md.
#pragma once

#include <google/protobuf/message_lite.h>

#include <memory>
#include <string>

namespace cosim {

/// The name's key in the metadata of a Session call.
inline constexpr const char* kSocketMetadata = "cosim-socket";

class Frames
{
  public:
    /// Connects to a client that listens there; null where it can't be reached, or is another user's.
    static std::unique_ptr<Frames> Connect(const std::string& name);
    ~Frames();
    Frames(const Frames&) = delete;
    Frames& operator=(const Frames&) = delete;

    /// Waits for the next message; false where none will come. Throws SessionError (TOO_LARGE, STATE).
    bool Receive(google::protobuf::MessageLite& message);
    /// False where it doesn't get there.
    bool Send(const google::protobuf::MessageLite& message);
    /// Nothing comes or goes any more; whoever waits is told. From any thread.
    void End();

  private:
    explicit Frames(int fd)
        : fd_(fd)
    {
    }

    int fd_;
    /// What has been read and not taken, and what is sent.
    std::string read_;
    std::string sent_;
};

} // namespace cosim
