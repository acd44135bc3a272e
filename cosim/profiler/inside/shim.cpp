// A CUDA device without CUDA: what ATen asks of a device (guards, streams, events, hooks), answered by counters.
//
// Loaded before `import torch`, which looks hooks up once. No kernel ever runs: tensors are fake. Streams and
// events are numbers; what is recorded, waited for and synchronised is kept in order for the recorder.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

constexpr DeviceType kType = DeviceType::CUDA;

enum Kind : std::int64_t { RECORD = 0, BLOCK = 1, SYNC_STREAM = 2, SYNC_EVENT = 3, SYNC_DEVICE = 4 };
struct Note {
  std::int64_t kind, event, stream;
};

std::atomic<DeviceIndex> num_devices{1};
std::atomic<DeviceIndex> home{0};  // every thread starts on the rank's own device
std::atomic<std::int64_t> next_stream{1};
std::atomic<std::int64_t> next_event{1};
thread_local DeviceIndex device = -1;
thread_local std::int64_t stream = 0;
std::mutex notes_mutex;
std::vector<Note> notes;
std::atomic<std::int64_t> num_notes{0};

void note(Kind kind, std::int64_t event, std::int64_t on) {
  const std::lock_guard<std::mutex> lock(notes_mutex);
  notes.push_back({kind, event, on});
  num_notes = static_cast<std::int64_t>(notes.size());
}

DeviceIndex current() { return device < 0 ? home.load() : device; }
Device of(DeviceIndex index) { return Device(kType, index); }
Stream as_stream(std::int64_t id, DeviceIndex index) { return Stream(Stream::UNSAFE, of(index), id); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return kType; }
  Device exchangeDevice(Device to) const override {
    const auto before = current();
    uncheckedSetDevice(to);
    return of(before);
  }
  Device getDevice() const override { return of(current()); }
  void setDevice(Device to) const override { uncheckedSetDevice(to); }
  void uncheckedSetDevice(Device to) const noexcept override {
    if (to.index() >= 0) device = to.index();
  }
  Stream getStream(Device) const noexcept override { return as_stream(stream, current()); }
  Stream getDefaultStream(Device) const override { return as_stream(0, current()); }
  Stream getStreamFromGlobalPool(Device, bool = false) const override { return as_stream(next_stream++, current()); }
  Stream getNewStream(Device, int = 0) const override { return as_stream(next_stream++, current()); }
  Stream exchangeStream(Stream to) const noexcept override {
    const auto before = stream;
    stream = to.id();
    return as_stream(before, current());
  }
  DeviceIndex deviceCount() const noexcept override { return num_devices; }
  void record(void** event, const Stream& on, const DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = new std::int64_t;
    const auto id = next_event++;
    *static_cast<std::int64_t*>(*event) = id;
    note(RECORD, id, on.id());
  }
  void block(void* event, const Stream& on) const override {
    if (event != nullptr) note(BLOCK, *static_cast<std::int64_t*>(event), on.id());
  }
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    delete static_cast<std::int64_t*>(event);
  }
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream& which) const override { note(SYNC_STREAM, 0, which.id()); }
  bool isStreamCapturing(const Stream&) const override { return false; }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) note(SYNC_EVENT, *static_cast<std::int64_t*>(event), 0);
  }
  void synchronizeDevice(const DeviceIndex) const override { note(SYNC_DEVICE, 0, 0); }
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {}
  double elapsedTime(void*, void*, const DeviceIndex) const override { return 1.0; }
};

}  // namespace

// The registry finds hooks by the name of a class in at::
namespace at {
struct CosimCUDAHooks final : CUDAHooksInterface {
  explicit CosimCUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex current_device() const override { return current(); }
  int getNumGPUs() const override { return num_devices; }
  DeviceIndex deviceCount() const override { return num_devices; }
  DeviceIndex getCurrentDevice() const override { return current(); }
  void setCurrentDevice(DeviceIndex index) const override { device = index; }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    const auto before = current();
    device = index;
    return before;
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return index < 0 ? current() : exchangeDevice(index);
  }
  bool isPinnedPtr(const void*) const override { return false; }
  void deviceSynchronize(DeviceIndex) const override { note(SYNC_DEVICE, 0, 0); }
};
// Preferred: where torch has been built with CUDA, its own hooks come second.
C10_REGISTER_TYPED_CLASS_WITH_PRIORITY(CUDAHooksRegistry, "CUDAHooks", c10::REGISTRY_PREFERRED, CosimCUDAHooks)
}  // namespace at

extern "C" {
// Once torch is there, so that a guard of its own comes first and is replaced.
void cosim_open(int devices, int own) {
  c10::impl::registerDeviceGuard(kType, new Guard);  // leaked on purpose, as ATen wants it
  num_devices = static_cast<DeviceIndex>(devices);
  home = static_cast<DeviceIndex>(own);
}
void cosim_set_device(int index) { device = static_cast<DeviceIndex>(index); }
int cosim_device() { return current(); }
std::int64_t cosim_stream() { return stream; }
// Hands over notes (kind, event, stream) of up to `room` and says how many there were.
std::int64_t cosim_notes(std::int64_t* out, std::int64_t room) {
  if (num_notes == 0) return 0;
  const std::lock_guard<std::mutex> lock(notes_mutex);
  const auto count = std::min<std::int64_t>(room, static_cast<std::int64_t>(notes.size()));
  for (std::int64_t k = 0; k < count; ++k) {
    out[3 * k] = notes[k].kind;
    out[3 * k + 1] = notes[k].event;
    out[3 * k + 2] = notes[k].stream;
  }
  notes.erase(notes.begin(), notes.begin() + count);
  num_notes = static_cast<std::int64_t>(notes.size());
  return count;
}
}

