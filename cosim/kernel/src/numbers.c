/* Small things about numbers that all files use. */
#include "kernel.h"

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline double least_of(double a, double b) { return a < b ? a : b; }
static inline double most_of(double a, double b) { return a > b ? a : b; }

static const uint64_t GOLDEN = 0x9E3779B97F4A7C15;

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195). */
static inline uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}
