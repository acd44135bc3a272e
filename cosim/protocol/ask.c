/* A control of Python as a function of C: what it is told goes over a socket to the process that has the control, and
 * its answer comes back. The socket's name stands in COSIM_ASKED. */
#include "kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* What comes back, and what goes out before the hops. */
struct answer {
  struct control_row row;
  double state[MOST_STATES];
};

static int connected(void) {
  const char *name = getenv("COSIM_ASKED");
  struct sockaddr_un there = {.sun_family = AF_UNIX};
  int socket_of = socket(AF_UNIX, SOCK_STREAM, 0);
  if (!name || strlen(name) >= sizeof there.sun_path || socket_of < 0) return -1;
  memcpy(there.sun_path, name, strlen(name));
  if (connect(socket_of, (struct sockaddr *)&there, sizeof there) == 0) return socket_of;
  close(socket_of);
  return -1;
}

static bool send_all(int to, const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t done = send(to, bytes, count, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done, count -= (size_t)done;
  }
  return true;
}

static bool receive_all(int from, char *bytes, size_t count) {
  while (count > 0) {
    ssize_t done = recv(from, bytes, count, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done, count -= (size_t)done;
  }
  return true;
}

EXPORT void ask(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state, const double *parameters) {
  (void)parameters;
  static int there = -1;
  if (there < 0) there = connected();
  for (int64_t i = 0; i < n; i++) {
    struct answer both = {.row = rows[i]};
    double *own = &state[MOST_STATES * rows[i].conn];
    size_t hops = (size_t)rows[i].hops * sizeof *telemetry;
    memcpy(both.state, own, sizeof both.state);
    bool is_said = there >= 0 && send_all(there, (char *)&both, sizeof both) &&
                   send_all(there, (char *)&telemetry[rows[i].begin], hops) &&
                   receive_all(there, (char *)&both, sizeof both);
    /* No number ends the run: who was asked knows why. */
    if (!is_said) both.row.window = both.row.rate = 0.0 / 0.0;
    rows[i] = both.row;
    memcpy(own, both.state, sizeof both.state);
  }
}
