"""IR: the contract between translate and table: what a proxy fleet serves, and nothing about where it came from.

In: written by `translate` only. Out: read by `table` (compiles it to shards), by `core` and by
`dump`/`explain`. For `core`, a rule's payload and the clusters are these very structs in
MessagePack. Everything is immutable, ordered and made of plain values, so the same objects always
give the same bytes. Durations are milliseconds, sizes are bytes, weights are relative. It must
never hold a Kubernetes object, a clock reading or an open resource.
"""

from edgefast.ir.backend import HashCookie as HashCookie
from edgefast.ir.backend import HashPart as HashPart
from edgefast.ir.backend import HashPolicy as HashPolicy
from edgefast.ir.backend import HealthCheck as HealthCheck
from edgefast.ir.backend import LoadBalancer as LoadBalancer
from edgefast.ir.backend import OutlierDetection as OutlierDetection
from edgefast.ir.backend import Proxies as Proxies
from edgefast.ir.backend import RetryBudget as RetryBudget
from edgefast.ir.backend import RetryConstraint as RetryConstraint
from edgefast.ir.backend import SessionPersistence as SessionPersistence
from edgefast.ir.backend import ZoneAware as ZoneAware
from edgefast.ir.backend import name_session as name_session
from edgefast.ir.credentials import AccessClaim as AccessClaim
from edgefast.ir.credentials import AccessToken as AccessToken
from edgefast.ir.credentials import ApiKeyAuth as ApiKeyAuth
from edgefast.ir.credentials import BasicAuth as BasicAuth
from edgefast.ir.credentials import CredentialExtractors as CredentialExtractors
from edgefast.ir.credentials import Jwt as Jwt
from edgefast.ir.credentials import JwtProvider as JwtProvider
from edgefast.ir.credentials import RemoteKeys as RemoteKeys
from edgefast.ir.fleet import CHECKS_MOST as CHECKS_MOST
from edgefast.ir.fleet import IR as IR
from edgefast.ir.fleet import BackendRef as BackendRef
from edgefast.ir.fleet import ClientRule as ClientRule
from edgefast.ir.fleet import Cluster as Cluster
from edgefast.ir.fleet import Cors as Cors
from edgefast.ir.fleet import Endpoint as Endpoint
from edgefast.ir.fleet import Entry as Entry
from edgefast.ir.fleet import Fleet as Fleet
from edgefast.ir.fleet import Listener as Listener
from edgefast.ir.fleet import ListenerTls as ListenerTls
from edgefast.ir.fleet import Match as Match
from edgefast.ir.fleet import Mirror as Mirror
from edgefast.ir.fleet import NameType as NameType
from edgefast.ir.fleet import PathRewrite as PathRewrite
from edgefast.ir.fleet import Protocol as Protocol
from edgefast.ir.fleet import RateLimit as RateLimit
from edgefast.ir.fleet import RateLimitStore as RateLimitStore
from edgefast.ir.fleet import Redirect as Redirect
from edgefast.ir.fleet import ResponseRewrite as ResponseRewrite
from edgefast.ir.fleet import Retry as Retry
from edgefast.ir.fleet import Rewrite as Rewrite
from edgefast.ir.fleet import Rule as Rule
from edgefast.ir.fleet import Secret as Secret
from edgefast.ir.fleet import TextRewrite as TextRewrite
from edgefast.ir.fleet import Timeouts as Timeouts
from edgefast.ir.fleet import UpstreamProtocol as UpstreamProtocol
from edgefast.ir.fleet import UpstreamTls as UpstreamTls
from edgefast.ir.fleet import ValueMatch as ValueMatch
from edgefast.ir.fleet import VirtualHost as VirtualHost
from edgefast.ir.header_ops import HeaderOps as HeaderOps
from edgefast.ir.http import ClientAddress as ClientAddress
from edgefast.ir.http import ForwardedHeaders as ForwardedHeaders
from edgefast.ir.http import GrpcSettings as GrpcSettings
from edgefast.ir.http import Http2Settings as Http2Settings
from edgefast.ir.http import Http2Upstream as Http2Upstream
from edgefast.ir.http import HttpSettings as HttpSettings
from edgefast.ir.infra import Infra as Infra
from edgefast.ir.infra import InfraHPA as InfraHPA
from edgefast.ir.infra import InfraPod as InfraPod
from edgefast.ir.infra import InfraPort as InfraPort
from edgefast.ir.infra import InfraService as InfraService
from edgefast.ir.layer4 import ProxyProtocol as ProxyProtocol
from edgefast.ir.layer4 import StreamBackend as StreamBackend
from edgefast.ir.layer4 import StreamRoute as StreamRoute
from edgefast.ir.layer4 import StreamSettings as StreamSettings
from edgefast.ir.layer4 import Transport as Transport
from edgefast.ir.layer4 import transport_of as transport_of
from edgefast.ir.policy import AccessRule as AccessRule
from edgefast.ir.policy import AuthBackend as AuthBackend
from edgefast.ir.policy import AuthCache as AuthCache
from edgefast.ir.policy import Authorization as Authorization
from edgefast.ir.policy import BackendPolicy as BackendPolicy
from edgefast.ir.policy import Bandwidth as Bandwidth
from edgefast.ir.policy import Compression as Compression
from edgefast.ir.policy import DirectResponse as DirectResponse
from edgefast.ir.policy import Encoding as Encoding
from edgefast.ir.policy import ErrorService as ErrorService
from edgefast.ir.policy import ExtAuth as ExtAuth
from edgefast.ir.policy import Fault as Fault
from edgefast.ir.policy import OverrideSource as OverrideSource
from edgefast.ir.policy import PathKind as PathKind
from edgefast.ir.policy import PolicyUnit as PolicyUnit
from edgefast.ir.policy import ResponseOverride as ResponseOverride
from edgefast.ir.policy import Traffic as Traffic
from edgefast.ir.telemetry import AccessLog as AccessLog
from edgefast.ir.telemetry import LogMember as LogMember
from edgefast.ir.telemetry import LogPiece as LogPiece
from edgefast.ir.telemetry import Tracing as Tracing
