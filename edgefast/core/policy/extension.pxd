# Policies: authentication, authorization, and faults. A unit that is compiled on its own; it cimports the fast path (fastpath.pxd), which never cimports it.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *
from edgefast.core.csrcgrpc cimport *
from edgefast.core.csrcbackend cimport *
from edgefast.core.csrch2 cimport *
from edgefast.core.fastpath cimport *

cdef class CredentialExtractor
cdef class CredentialNames
cdef class CachedToken
cdef class TokenCache
cdef class Authenticator
cdef class ApiKeys
cdef class Tokens
cdef class Passwords
cdef class Logins
cdef class AccessHeader
cdef class AccessTest
cdef class Access
cdef class CheckAnswer
cdef class AuthEdits
cdef class ServiceAuthResponse
cdef class AuthDecision
cdef class AuthAnswers
cdef class AuthCache
cdef class AnyGroup
cdef class AuthService
cdef class CheckOptions
cdef class SignIn
cdef class AuthCall
cdef class CheckCall
cdef class AuthBodyBuffer
cdef class RuleAuthFlow
cdef class LivePolicy
cdef class RulePolicyChain
cdef class ConnectionPolicyChain
cdef class ListenerFilterChain
cdef class ListenerAuthFlow
cdef class InjectedFault
cdef class HttpErrorService
cdef class ErrorFlow
cdef class ErrorCall
cdef class PolicyUnits

include "policy/credential_extractor.pxd"
include "policy/tokencache.pxd"
include "policy/authenticator.pxd"
include "policy/logins.pxd"
include "policy/access.pxd"
include "policy/check_response.pxd"
include "policy/authedits.pxd"
include "policy/authcache.pxd"
include "policy/signin.pxd"
include "policy/check_path.pxd"
include "policy/checkoptions.pxd"
include "policy/authservice.pxd"
include "policy/authcall.pxd"
include "policy/check_call.pxd"
include "policy/auth_body_buffer.pxd"
include "policy/auth_flow.pxd"
include "policy/policy_chain.pxd"
include "policy/connection_policies.pxd"
include "policy/anygroup.pxd"
include "policy/listenerfilters.pxd"
include "policy/fault.pxd"
include "policy/error_service.pxd"
include "policy/units.pxd"
