#include "frames.h"

#include "adapter.h"
#include "error.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace cosim {
namespace {

constexpr size_t kHead = 4;
constexpr size_t kPiece = 4096;

/// Of a name: this, and 32 hexadecimal digits.
const std::string kPrefix = "cosim-";

uint32_t
LengthAt(const char* head)
{
    uint32_t length = 0;
    for (size_t k = kHead; k-- > 0;)
    {
        length = length << 8 | static_cast<unsigned char>(head[k]);
    }
    return length;
}

} // namespace

std::unique_ptr<Frames>
Frames::Connect(const std::string& name)
{
    const bool is_name = name.size() == kPrefix.size() + 32 && name.compare(0, kPrefix.size(), kPrefix) == 0 &&
                         name.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string::npos;
    if (!is_name)
    {
        return nullptr;
    }
    std::unique_ptr<Frames> made(new Frames(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
    sockaddr_un there{};
    there.sun_family = AF_UNIX;
    // Behind a zero: an abstract name, which has no file.
    std::memcpy(there.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    ucred other{};
    socklen_t room = sizeof other;
    if (made->fd_ < 0 || connect(made->fd_, reinterpret_cast<sockaddr*>(&there), size) != 0 ||
        getsockopt(made->fd_, SOL_SOCKET, SO_PEERCRED, &other, &room) != 0 || other.uid != geteuid())
    {
        return nullptr;
    }
    return made;
}

Frames::~Frames()
{
    if (fd_ >= 0)
    {
        close(fd_);
    }
}

bool
Frames::Receive(google::protobuf::MessageLite& message)
{
    size_t end = kHead;
    while (true)
    {
        if (read_.size() >= kHead)
        {
            const uint32_t length = LengthAt(read_.data());
            if (length > kMaxMessageBytes)
            {
                throw SessionError("TOO_LARGE",
                                   "a message of " + std::to_string(length) + " bytes",
                                   {{"limit", std::to_string(kMaxMessageBytes)}, {"given", std::to_string(length)}});
            }
            end = kHead + length;
        }
        if (read_.size() >= end && read_.size() >= kHead)
        {
            break;
        }
        const size_t have = read_.size();
        read_.resize(have + std::max(kPiece, end - std::min(end, have)));
        const ssize_t came = recv(fd_, read_.data() + have, read_.size() - have, 0);
        read_.resize(have + static_cast<size_t>(std::max<ssize_t>(came, 0)));
        if (came == 0 || (came < 0 && errno != EINTR))
        {
            return false;
        }
    }
    if (!message.ParseFromArray(read_.data() + kHead, static_cast<int>(end - kHead)))
    {
        throw SessionError("STATE", std::to_string(end - kHead) + " bytes that are no SessionRequest");
    }
    read_.erase(0, end);
    return true;
}

bool
Frames::Send(const google::protobuf::MessageLite& message)
{
    const size_t length = message.ByteSizeLong();
    sent_.resize(kHead);
    for (size_t k = 0; k < kHead; ++k)
    {
        sent_[k] = static_cast<char>(length >> (8 * k));
    }
    message.AppendToString(&sent_);
    for (size_t done = 0; done < sent_.size();)
    {
        const ssize_t went = send(fd_, sent_.data() + done, sent_.size() - done, MSG_NOSIGNAL);
        if (went < 0 && errno != EINTR)
        {
            return false;
        }
        done += static_cast<size_t>(std::max<ssize_t>(went, 0));
    }
    return true;
}

void
Frames::End()
{
    shutdown(fd_, SHUT_RDWR);
}

} // namespace cosim
