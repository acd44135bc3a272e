// A congestion control of the user's: a function of a library, called as cosim's own kernel calls it.
#pragma once

#include "control.h"

#include <map>
#include <string>
#include <vector>

namespace cosim {

/// What a connection's round trip was, and where the function answers: `struct control_row` of cosim's kernel.h.
struct ControlRow
{
    int64_t conn;
    int64_t begin;
    double first;
    double elapsed, rtt, base_rtt, marked, again, lost, timeout, acked, delivered, flight, limited, mss, line, sent, size;
    double coflow_sent, coflow_size, job, priority, weight, hops, window, rate, wait, slow_start, gain, chance, granted;
    double lost_inside;
};

/// Telemetry of a hop: `struct hop_sight` there.
struct HopSight
{
    double queue, tx, capacity;
};

using ControlKernel = void (*)(int64_t n, ControlRow* rows, HopSight* telemetry, double* state, const double* parameters);

/// What a session is told of it.
struct OwnControl
{
    /// A file in the folder that the server was told of (COSIM_CONTROLS), and the function in it.
    std::string library;
    std::string function;
    std::vector<double> parameters;
    /// Whether its answer is `rate`, and `window` otherwise, sent evenly over a round trip where it is `paced`.
    bool gives_rate = false;
    bool paced = false;
    bool telemetry = false;
    /// What ports mark, by their rate; empty: nothing.
    std::map<double, Marking> marks;
    uint64_t seed = 0;
};

/// Its kind. `wire_bytes`: a full packet's. Throws SessionError (INVALID_OPEN) where it can't be loaded.
ControlKind LoadOwn(const OwnControl& own, uint32_t wire_bytes);

} // namespace cosim
