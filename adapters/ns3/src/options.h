// An adapter's own settings: read from texts, told as texts.
#pragma once

#include "error.h"

#include <charconv>
#include <functional>
#include <map>
#include <sstream>
#include <string>

namespace cosim {

/// A number from its whole text; throws SessionError (INVALID_OPEN).
template <typename T>
T
ParseOption(const std::string& key, const std::string& text, T low, T high)
{
    T value{};
    const char* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, value);
    if (fault != std::errc() || stop != end || !(value >= low && value <= high))
    {
        std::ostringstream message;
        message << "option " << key << " is " << text << "; it takes a number from " << low << " to " << high;
        throw SessionError("INVALID_OPEN", message.str(), {{"field", "options." + key}});
    }
    return value;
}

/// One option of a struct of settings.
template <typename Settings>
struct Option
{
    std::string about;
    std::function<void(Settings&, const std::string& key, const std::string& value)> set;
    std::function<std::string(const Settings&)> tell;
};

template <typename Settings>
using Options = std::map<std::string, Option<Settings>>;

/// A field that takes numbers from `low` to `high`.
template <typename Settings, typename Owner, typename T>
Option<Settings>
NumberOption(std::string about, T Owner::*field, T low, T high)
{
    return {std::move(about),
            [=](Settings& s, const std::string& key, const std::string& value) {
                s.*field = ParseOption<T>(key, value, low, high);
            },
            [=](const Settings& s) {
                std::ostringstream text;
                text << s.*field;
                return text.str();
            }};
}

/// Sets an option by name; throws SessionError (INVALID_OPEN) for an unknown one or a bad value.
template <typename Settings>
void
SetOption(const Options<Settings>& options, Settings& settings, const std::string& key, const std::string& value)
{
    const auto found = options.find(key);
    if (found == options.end())
    {
        std::string known;
        for (const auto& [name, option] : options)
        {
            known += (known.empty() ? "" : ", ") + name;
        }
        throw SessionError("INVALID_OPEN",
                           "ns-3 has no option " + key + "; there are " + known,
                           {{"field", "options." + key}});
    }
    found->second.set(settings, key, value);
}

} // namespace cosim
