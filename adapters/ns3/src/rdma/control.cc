#include "control.h"

#include <utility>

namespace cosim {
namespace {

std::map<std::string, ControlKind>&
Known()
{
    static std::map<std::string, ControlKind> known;
    return known;
}

} // namespace

const std::map<std::string, ControlKind>&
AllControls()
{
    return Known();
}

ControlEntry::ControlEntry(const std::string& name, ControlKind kind)
{
    Known().emplace(name, std::move(kind));
}

} // namespace cosim
