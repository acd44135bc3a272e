from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Feature(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FEATURE_UNSPECIFIED: _ClassVar[Feature]
    FEATURE_DEPENDENT_FLOWS: _ClassVar[Feature]
    FEATURE_START_DEPENDENCIES: _ClassVar[Feature]
    FEATURE_PEEK: _ClassVar[Feature]
    FEATURE_GIVEN_PATHS: _ClassVar[Feature]
    FEATURE_ECMP: _ClassVar[Feature]
    FEATURE_SPRAY: _ClassVar[Feature]
    FEATURE_ECN: _ClassVar[Feature]
    FEATURE_LINK_EVENTS: _ClassVar[Feature]
    FEATURE_PRIORITY: _ClassVar[Feature]
    FEATURE_WEIGHT: _ClassVar[Feature]
    FEATURE_COFLOW: _ClassVar[Feature]
    FEATURE_CANCEL: _ClassVar[Feature]
    FEATURE_WALL_BUDGET: _ClassVar[Feature]
    FEATURE_QUEUES: _ClassVar[Feature]
    FEATURE_RATES: _ClassVar[Feature]
    FEATURE_LINK_RATES: _ClassVar[Feature]
    FEATURE_DETOURS: _ClassVar[Feature]
    FEATURE_LIVE_CHANGES: _ClassVar[Feature]
    FEATURE_SWITCH_ENDS: _ClassVar[Feature]
    FEATURE_LIVE_CONTROL: _ClassVar[Feature]
    FEATURE_COMPUTATIONS: _ClassVar[Feature]
    FEATURE_SOCKET: _ClassVar[Feature]

class RoutingKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROUTING_KIND_UNSPECIFIED: _ClassVar[RoutingKind]
    ROUTING_KIND_GIVEN: _ClassVar[RoutingKind]
    ROUTING_KIND_ECMP: _ClassVar[RoutingKind]
    ROUTING_KIND_SPRAY: _ClassVar[RoutingKind]

class DependencyKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEPENDENCY_KIND_UNSPECIFIED: _ClassVar[DependencyKind]
    DEPENDENCY_KIND_COMPLETION: _ClassVar[DependencyKind]
    DEPENDENCY_KIND_START: _ClassVar[DependencyKind]

class StopReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STOP_REASON_UNSPECIFIED: _ClassVar[StopReason]
    STOP_REASON_HORIZON: _ClassVar[StopReason]
    STOP_REASON_REACTION: _ClassVar[StopReason]
    STOP_REASON_BUFFER: _ClassVar[StopReason]
    STOP_REASON_BUDGET: _ClassVar[StopReason]
    STOP_REASON_CANCELLED: _ClassVar[StopReason]
FEATURE_UNSPECIFIED: Feature
FEATURE_DEPENDENT_FLOWS: Feature
FEATURE_START_DEPENDENCIES: Feature
FEATURE_PEEK: Feature
FEATURE_GIVEN_PATHS: Feature
FEATURE_ECMP: Feature
FEATURE_SPRAY: Feature
FEATURE_ECN: Feature
FEATURE_LINK_EVENTS: Feature
FEATURE_PRIORITY: Feature
FEATURE_WEIGHT: Feature
FEATURE_COFLOW: Feature
FEATURE_CANCEL: Feature
FEATURE_WALL_BUDGET: Feature
FEATURE_QUEUES: Feature
FEATURE_RATES: Feature
FEATURE_LINK_RATES: Feature
FEATURE_DETOURS: Feature
FEATURE_LIVE_CHANGES: Feature
FEATURE_SWITCH_ENDS: Feature
FEATURE_LIVE_CONTROL: Feature
FEATURE_COMPUTATIONS: Feature
FEATURE_SOCKET: Feature
ROUTING_KIND_UNSPECIFIED: RoutingKind
ROUTING_KIND_GIVEN: RoutingKind
ROUTING_KIND_ECMP: RoutingKind
ROUTING_KIND_SPRAY: RoutingKind
DEPENDENCY_KIND_UNSPECIFIED: DependencyKind
DEPENDENCY_KIND_COMPLETION: DependencyKind
DEPENDENCY_KIND_START: DependencyKind
STOP_REASON_UNSPECIFIED: StopReason
STOP_REASON_HORIZON: StopReason
STOP_REASON_REACTION: StopReason
STOP_REASON_BUFFER: StopReason
STOP_REASON_BUDGET: StopReason
STOP_REASON_CANCELLED: StopReason

class Version(_message.Message):
    __slots__ = ("major", "minor")
    MAJOR_FIELD_NUMBER: _ClassVar[int]
    MINOR_FIELD_NUMBER: _ClassVar[int]
    major: int
    minor: int
    def __init__(self, major: _Optional[int] = ..., minor: _Optional[int] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: Version
    def __init__(self, version: _Optional[_Union[Version, _Mapping]] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("version", "simulator", "simulator_version", "build", "deterministic", "quantum_ps", "features", "limits", "transports", "queue_disciplines", "options")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    DETERMINISTIC_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_PS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    TRANSPORTS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DISCIPLINES_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    version: Version
    simulator: str
    simulator_version: str
    build: str
    deterministic: bool
    quantum_ps: int
    features: _containers.RepeatedScalarFieldContainer[Feature]
    limits: Limits
    transports: _containers.RepeatedScalarFieldContainer[str]
    queue_disciplines: _containers.RepeatedScalarFieldContainer[str]
    options: _containers.ScalarMap[str, str]
    def __init__(self, version: _Optional[_Union[Version, _Mapping]] = ..., simulator: _Optional[str] = ..., simulator_version: _Optional[str] = ..., build: _Optional[str] = ..., deterministic: _Optional[bool] = ..., quantum_ps: _Optional[int] = ..., features: _Optional[_Iterable[_Union[Feature, str]]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., transports: _Optional[_Iterable[str]] = ..., queue_disciplines: _Optional[_Iterable[str]] = ..., options: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_message_bytes", "max_open_flows", "max_sessions", "max_nodes", "max_links")
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_OPEN_FLOWS_FIELD_NUMBER: _ClassVar[int]
    MAX_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_LINKS_FIELD_NUMBER: _ClassVar[int]
    max_message_bytes: int
    max_open_flows: int
    max_sessions: int
    max_nodes: int
    max_links: int
    def __init__(self, max_message_bytes: _Optional[int] = ..., max_open_flows: _Optional[int] = ..., max_sessions: _Optional[int] = ..., max_nodes: _Optional[int] = ..., max_links: _Optional[int] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("open", "advance", "statistics", "peek", "cancel", "close", "sample")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ADVANCE_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    open: Open
    advance: Advance
    statistics: StatisticsRequest
    peek: PeekRequest
    cancel: Cancel
    close: Close
    sample: SampleRequest
    def __init__(self, open: _Optional[_Union[Open, _Mapping]] = ..., advance: _Optional[_Union[Advance, _Mapping]] = ..., statistics: _Optional[_Union[StatisticsRequest, _Mapping]] = ..., peek: _Optional[_Union[PeekRequest, _Mapping]] = ..., cancel: _Optional[_Union[Cancel, _Mapping]] = ..., close: _Optional[_Union[Close, _Mapping]] = ..., sample: _Optional[_Union[SampleRequest, _Mapping]] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("opened", "advanced", "statistics", "peeked", "sampled")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ADVANCED_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    PEEKED_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_FIELD_NUMBER: _ClassVar[int]
    opened: Opened
    advanced: Advanced
    statistics: Statistics
    peeked: Peeked
    sampled: Sampled
    def __init__(self, opened: _Optional[_Union[Opened, _Mapping]] = ..., advanced: _Optional[_Union[Advanced, _Mapping]] = ..., statistics: _Optional[_Union[Statistics, _Mapping]] = ..., peeked: _Optional[_Union[Peeked, _Mapping]] = ..., sampled: _Optional[_Union[Sampled, _Mapping]] = ...) -> None: ...

class Open(_message.Message):
    __slots__ = ("version", "required_features", "topology", "routing", "queue", "ecn", "transport", "link_events", "seed", "options", "max_message_bytes")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FEATURES_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    ROUTING_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ECN_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    LINK_EVENTS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    version: Version
    required_features: _containers.RepeatedScalarFieldContainer[Feature]
    topology: Topology
    routing: Routing
    queue: Queue
    ecn: Ecn
    transport: Transport
    link_events: LinkEvents
    seed: int
    options: _containers.ScalarMap[str, str]
    max_message_bytes: int
    def __init__(self, version: _Optional[_Union[Version, _Mapping]] = ..., required_features: _Optional[_Iterable[_Union[Feature, str]]] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., routing: _Optional[_Union[Routing, _Mapping]] = ..., queue: _Optional[_Union[Queue, _Mapping]] = ..., ecn: _Optional[_Union[Ecn, _Mapping]] = ..., transport: _Optional[_Union[Transport, _Mapping]] = ..., link_events: _Optional[_Union[LinkEvents, _Mapping]] = ..., seed: _Optional[int] = ..., options: _Optional[_Mapping[str, str]] = ..., max_message_bytes: _Optional[int] = ...) -> None: ...

class Topology(_message.Message):
    __slots__ = ("name", "num_endpoints", "node_names", "link_src", "link_dst", "link_rate_bps", "link_latency_ps")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    LINK_SRC_FIELD_NUMBER: _ClassVar[int]
    LINK_DST_FIELD_NUMBER: _ClassVar[int]
    LINK_RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    LINK_LATENCY_PS_FIELD_NUMBER: _ClassVar[int]
    name: str
    num_endpoints: int
    node_names: _containers.RepeatedScalarFieldContainer[str]
    link_src: _containers.RepeatedScalarFieldContainer[int]
    link_dst: _containers.RepeatedScalarFieldContainer[int]
    link_rate_bps: _containers.RepeatedScalarFieldContainer[float]
    link_latency_ps: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., num_endpoints: _Optional[int] = ..., node_names: _Optional[_Iterable[str]] = ..., link_src: _Optional[_Iterable[int]] = ..., link_dst: _Optional[_Iterable[int]] = ..., link_rate_bps: _Optional[_Iterable[float]] = ..., link_latency_ps: _Optional[_Iterable[int]] = ...) -> None: ...

class Routing(_message.Message):
    __slots__ = ("kind", "seed", "endpoints_forward")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FORWARD_FIELD_NUMBER: _ClassVar[int]
    kind: RoutingKind
    seed: int
    endpoints_forward: bool
    def __init__(self, kind: _Optional[_Union[RoutingKind, str]] = ..., seed: _Optional[int] = ..., endpoints_forward: _Optional[bool] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("discipline", "capacity_bytes")
    DISCIPLINE_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_BYTES_FIELD_NUMBER: _ClassVar[int]
    discipline: str
    capacity_bytes: int
    def __init__(self, discipline: _Optional[str] = ..., capacity_bytes: _Optional[int] = ...) -> None: ...

class Ecn(_message.Message):
    __slots__ = ("mark_min_bytes", "mark_max_bytes")
    MARK_MIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    MARK_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    mark_min_bytes: int
    mark_max_bytes: int
    def __init__(self, mark_min_bytes: _Optional[int] = ..., mark_max_bytes: _Optional[int] = ...) -> None: ...

class Transport(_message.Message):
    __slots__ = ("name", "mtu_bytes", "mltcp")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MTU_BYTES_FIELD_NUMBER: _ClassVar[int]
    MLTCP_FIELD_NUMBER: _ClassVar[int]
    name: str
    mtu_bytes: int
    mltcp: bool
    def __init__(self, name: _Optional[str] = ..., mtu_bytes: _Optional[int] = ..., mltcp: _Optional[bool] = ...) -> None: ...

class LinkEvents(_message.Message):
    __slots__ = ("time_ps", "link", "up", "rate_bps", "detection_ps")
    TIME_PS_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    DETECTION_PS_FIELD_NUMBER: _ClassVar[int]
    time_ps: _containers.RepeatedScalarFieldContainer[int]
    link: _containers.RepeatedScalarFieldContainer[int]
    up: _containers.RepeatedScalarFieldContainer[bool]
    rate_bps: _containers.RepeatedScalarFieldContainer[float]
    detection_ps: int
    def __init__(self, time_ps: _Optional[_Iterable[int]] = ..., link: _Optional[_Iterable[int]] = ..., up: _Optional[_Iterable[bool]] = ..., rate_bps: _Optional[_Iterable[float]] = ..., detection_ps: _Optional[int] = ...) -> None: ...

class Changes(_message.Message):
    __slots__ = ("time_ps", "link", "rate_bps", "route_ps", "dead_end", "dead", "control")
    class ControlEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TIME_PS_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    ROUTE_PS_FIELD_NUMBER: _ClassVar[int]
    DEAD_END_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    time_ps: _containers.RepeatedScalarFieldContainer[int]
    link: _containers.RepeatedScalarFieldContainer[int]
    rate_bps: _containers.RepeatedScalarFieldContainer[float]
    route_ps: _containers.RepeatedScalarFieldContainer[int]
    dead_end: _containers.RepeatedScalarFieldContainer[int]
    dead: _containers.RepeatedScalarFieldContainer[int]
    control: _containers.ScalarMap[str, str]
    def __init__(self, time_ps: _Optional[_Iterable[int]] = ..., link: _Optional[_Iterable[int]] = ..., rate_bps: _Optional[_Iterable[float]] = ..., route_ps: _Optional[_Iterable[int]] = ..., dead_end: _Optional[_Iterable[int]] = ..., dead: _Optional[_Iterable[int]] = ..., control: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Opened(_message.Message):
    __slots__ = ("credit", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    credit: int
    settings: _containers.ScalarMap[str, str]
    def __init__(self, credit: _Optional[int] = ..., settings: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Flows(_message.Message):
    __slots__ = ("count", "first_id", "key_high", "key_low", "src", "dst", "size_bytes", "channel", "start_ps", "cause_ps", "priority", "weight", "job", "coflow", "coflow_bytes", "reaction_delay_ps", "delay_ps", "dependency_end", "dependency_id", "dependency_kind")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_HIGH_FIELD_NUMBER: _ClassVar[int]
    KEY_LOW_FIELD_NUMBER: _ClassVar[int]
    SRC_FIELD_NUMBER: _ClassVar[int]
    DST_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    START_PS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_PS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    COFLOW_FIELD_NUMBER: _ClassVar[int]
    COFLOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    REACTION_DELAY_PS_FIELD_NUMBER: _ClassVar[int]
    DELAY_PS_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCY_END_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCY_ID_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCY_KIND_FIELD_NUMBER: _ClassVar[int]
    count: int
    first_id: int
    key_high: _containers.RepeatedScalarFieldContainer[int]
    key_low: _containers.RepeatedScalarFieldContainer[int]
    src: _containers.RepeatedScalarFieldContainer[int]
    dst: _containers.RepeatedScalarFieldContainer[int]
    size_bytes: _containers.RepeatedScalarFieldContainer[int]
    channel: _containers.RepeatedScalarFieldContainer[int]
    start_ps: _containers.RepeatedScalarFieldContainer[int]
    cause_ps: _containers.RepeatedScalarFieldContainer[int]
    priority: _containers.RepeatedScalarFieldContainer[int]
    weight: _containers.RepeatedScalarFieldContainer[float]
    job: _containers.RepeatedScalarFieldContainer[int]
    coflow: _containers.RepeatedScalarFieldContainer[int]
    coflow_bytes: _containers.RepeatedScalarFieldContainer[int]
    reaction_delay_ps: _containers.RepeatedScalarFieldContainer[int]
    delay_ps: _containers.RepeatedScalarFieldContainer[int]
    dependency_end: _containers.RepeatedScalarFieldContainer[int]
    dependency_id: _containers.RepeatedScalarFieldContainer[int]
    dependency_kind: _containers.RepeatedScalarFieldContainer[DependencyKind]
    def __init__(self, count: _Optional[int] = ..., first_id: _Optional[int] = ..., key_high: _Optional[_Iterable[int]] = ..., key_low: _Optional[_Iterable[int]] = ..., src: _Optional[_Iterable[int]] = ..., dst: _Optional[_Iterable[int]] = ..., size_bytes: _Optional[_Iterable[int]] = ..., channel: _Optional[_Iterable[int]] = ..., start_ps: _Optional[_Iterable[int]] = ..., cause_ps: _Optional[_Iterable[int]] = ..., priority: _Optional[_Iterable[int]] = ..., weight: _Optional[_Iterable[float]] = ..., job: _Optional[_Iterable[int]] = ..., coflow: _Optional[_Iterable[int]] = ..., coflow_bytes: _Optional[_Iterable[int]] = ..., reaction_delay_ps: _Optional[_Iterable[int]] = ..., delay_ps: _Optional[_Iterable[int]] = ..., dependency_end: _Optional[_Iterable[int]] = ..., dependency_id: _Optional[_Iterable[int]] = ..., dependency_kind: _Optional[_Iterable[_Union[DependencyKind, str]]] = ...) -> None: ...

class Starts(_message.Message):
    __slots__ = ("id", "start_ps", "cause_ps")
    ID_FIELD_NUMBER: _ClassVar[int]
    START_PS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_PS_FIELD_NUMBER: _ClassVar[int]
    id: _containers.RepeatedScalarFieldContainer[int]
    start_ps: _containers.RepeatedScalarFieldContainer[int]
    cause_ps: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, id: _Optional[_Iterable[int]] = ..., start_ps: _Optional[_Iterable[int]] = ..., cause_ps: _Optional[_Iterable[int]] = ...) -> None: ...

class Paths(_message.Message):
    __slots__ = ("src", "dst", "channel", "end", "link", "dead_set")
    SRC_FIELD_NUMBER: _ClassVar[int]
    DST_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    DEAD_SET_FIELD_NUMBER: _ClassVar[int]
    src: _containers.RepeatedScalarFieldContainer[int]
    dst: _containers.RepeatedScalarFieldContainer[int]
    channel: _containers.RepeatedScalarFieldContainer[int]
    end: _containers.RepeatedScalarFieldContainer[int]
    link: _containers.RepeatedScalarFieldContainer[int]
    dead_set: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, src: _Optional[_Iterable[int]] = ..., dst: _Optional[_Iterable[int]] = ..., channel: _Optional[_Iterable[int]] = ..., end: _Optional[_Iterable[int]] = ..., link: _Optional[_Iterable[int]] = ..., dead_set: _Optional[_Iterable[int]] = ...) -> None: ...

class Advance(_message.Message):
    __slots__ = ("sequence", "more", "horizon_ps", "wall_budget_us", "paths", "flows", "starts", "oldest_id", "changes")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    HORIZON_PS_FIELD_NUMBER: _ClassVar[int]
    WALL_BUDGET_US_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_ID_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    more: bool
    horizon_ps: int
    wall_budget_us: int
    paths: Paths
    flows: Flows
    starts: Starts
    oldest_id: int
    changes: Changes
    def __init__(self, sequence: _Optional[int] = ..., more: _Optional[bool] = ..., horizon_ps: _Optional[int] = ..., wall_budget_us: _Optional[int] = ..., paths: _Optional[_Union[Paths, _Mapping]] = ..., flows: _Optional[_Union[Flows, _Mapping]] = ..., starts: _Optional[_Union[Starts, _Mapping]] = ..., oldest_id: _Optional[int] = ..., changes: _Optional[_Union[Changes, _Mapping]] = ...) -> None: ...

class Advanced(_message.Message):
    __slots__ = ("sequence", "more", "granted_ps", "stop_reason", "id", "start_ps", "time_ps", "credit", "digest", "simulator_ns", "server_ns", "events", "cause_ps")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    GRANTED_PS_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    START_PS_FIELD_NUMBER: _ClassVar[int]
    TIME_PS_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_NS_FIELD_NUMBER: _ClassVar[int]
    SERVER_NS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_PS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    more: bool
    granted_ps: int
    stop_reason: StopReason
    id: _containers.RepeatedScalarFieldContainer[int]
    start_ps: _containers.RepeatedScalarFieldContainer[int]
    time_ps: _containers.RepeatedScalarFieldContainer[int]
    credit: int
    digest: Digest
    simulator_ns: int
    server_ns: int
    events: int
    cause_ps: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, sequence: _Optional[int] = ..., more: _Optional[bool] = ..., granted_ps: _Optional[int] = ..., stop_reason: _Optional[_Union[StopReason, str]] = ..., id: _Optional[_Iterable[int]] = ..., start_ps: _Optional[_Iterable[int]] = ..., time_ps: _Optional[_Iterable[int]] = ..., credit: _Optional[int] = ..., digest: _Optional[_Union[Digest, _Mapping]] = ..., simulator_ns: _Optional[int] = ..., server_ns: _Optional[int] = ..., events: _Optional[int] = ..., cause_ps: _Optional[_Iterable[int]] = ...) -> None: ...

class Digest(_message.Message):
    __slots__ = ("a", "b")
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    a: int
    b: int
    def __init__(self, a: _Optional[int] = ..., b: _Optional[int] = ...) -> None: ...

class StatisticsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Statistics(_message.Message):
    __slots__ = ("link_bytes", "bin_ps", "busy_ps", "flows_started", "flows_completed", "events", "columns")
    LINK_BYTES_FIELD_NUMBER: _ClassVar[int]
    BIN_PS_FIELD_NUMBER: _ClassVar[int]
    BUSY_PS_FIELD_NUMBER: _ClassVar[int]
    FLOWS_STARTED_FIELD_NUMBER: _ClassVar[int]
    FLOWS_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    link_bytes: _containers.RepeatedScalarFieldContainer[int]
    bin_ps: int
    busy_ps: _containers.RepeatedScalarFieldContainer[int]
    flows_started: int
    flows_completed: int
    events: int
    columns: _containers.RepeatedCompositeFieldContainer[LinkColumn]
    def __init__(self, link_bytes: _Optional[_Iterable[int]] = ..., bin_ps: _Optional[int] = ..., busy_ps: _Optional[_Iterable[int]] = ..., flows_started: _Optional[int] = ..., flows_completed: _Optional[int] = ..., events: _Optional[int] = ..., columns: _Optional[_Iterable[_Union[LinkColumn, _Mapping]]] = ...) -> None: ...

class LinkColumn(_message.Message):
    __slots__ = ("name", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, name: _Optional[str] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class PeekRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Peeked(_message.Message):
    __slots__ = ("time_ps",)
    TIME_PS_FIELD_NUMBER: _ClassVar[int]
    time_ps: int
    def __init__(self, time_ps: _Optional[int] = ...) -> None: ...

class SampleRequest(_message.Message):
    __slots__ = ("link", "rates")
    LINK_FIELD_NUMBER: _ClassVar[int]
    RATES_FIELD_NUMBER: _ClassVar[int]
    link: _containers.RepeatedScalarFieldContainer[int]
    rates: bool
    def __init__(self, link: _Optional[_Iterable[int]] = ..., rates: _Optional[bool] = ...) -> None: ...

class Sampled(_message.Message):
    __slots__ = ("queue_bytes", "sent_bytes", "marks", "drops", "pause_ps", "job", "src", "dst", "rate_bps", "window_bytes", "marked", "has_work")
    QUEUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    DROPS_FIELD_NUMBER: _ClassVar[int]
    PAUSE_PS_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    SRC_FIELD_NUMBER: _ClassVar[int]
    DST_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    MARKED_FIELD_NUMBER: _ClassVar[int]
    HAS_WORK_FIELD_NUMBER: _ClassVar[int]
    queue_bytes: _containers.RepeatedScalarFieldContainer[float]
    sent_bytes: _containers.RepeatedScalarFieldContainer[float]
    marks: _containers.RepeatedScalarFieldContainer[float]
    drops: _containers.RepeatedScalarFieldContainer[float]
    pause_ps: _containers.RepeatedScalarFieldContainer[float]
    job: _containers.RepeatedScalarFieldContainer[int]
    src: _containers.RepeatedScalarFieldContainer[int]
    dst: _containers.RepeatedScalarFieldContainer[int]
    rate_bps: _containers.RepeatedScalarFieldContainer[float]
    window_bytes: _containers.RepeatedScalarFieldContainer[float]
    marked: _containers.RepeatedScalarFieldContainer[float]
    has_work: bool
    def __init__(self, queue_bytes: _Optional[_Iterable[float]] = ..., sent_bytes: _Optional[_Iterable[float]] = ..., marks: _Optional[_Iterable[float]] = ..., drops: _Optional[_Iterable[float]] = ..., pause_ps: _Optional[_Iterable[float]] = ..., job: _Optional[_Iterable[int]] = ..., src: _Optional[_Iterable[int]] = ..., dst: _Optional[_Iterable[int]] = ..., rate_bps: _Optional[_Iterable[float]] = ..., window_bytes: _Optional[_Iterable[float]] = ..., marked: _Optional[_Iterable[float]] = ..., has_work: _Optional[bool] = ...) -> None: ...

class Cancel(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class Close(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
