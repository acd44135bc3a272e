// What can go wrong, in the protocol's words.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace cosim {

/// An error that ends the session; `reason` is one of those in proto/cosim/protocol/v1/README.md.
class SessionError : public std::runtime_error
{
  public:
    SessionError(std::string reason,
                 const std::string& message,
                 std::map<std::string, std::string> metadata = {})
        : std::runtime_error(message),
          reason_(std::move(reason)),
          metadata_(std::move(metadata))
    {
    }

    const std::string& Reason() const
    {
        return reason_;
    }

    const std::map<std::string, std::string>& Metadata() const
    {
        return metadata_;
    }

  private:
    std::string reason_;
    std::map<std::string, std::string> metadata_;
};

} // namespace cosim
