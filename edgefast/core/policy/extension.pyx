# Policies: authentication, authorization, and faults.

include "imports.pxi"
include "cold.pxi"
include "core/consts.pxi"
include "net/consts.pxi"
include "cells.pxi"
include "head/hashes.pxi"

from html import escape as escape_html

_log = logging.getLogger("edgefast.engine")

include "policy/header_strip.pyx"
include "policy/credential_extractor.pyx"
include "policy/authenticator.pyx"
include "policy/tokencache.pyx"
include "policy/tokens.pyx"
include "policy/logins.pyx"
include "policy/path_variants.pyx"
include "policy/access.pyx"
include "policy/authcache.pyx"
include "policy/authservice.pyx"
include "policy/authcall.pyx"
include "policy/check_response.pyx"
include "policy/authedits.pyx"
include "policy/signin.pyx"
include "policy/checkoptions.pyx"
include "policy/check_request.pyx"
include "policy/check_call.pyx"
include "policy/grpcdenial.pyx"
include "policy/auth_body_buffer.pyx"
include "policy/auth_flow.pyx"
include "policy/policy_chain.pyx"
include "policy/anygroup.pyx"
include "policy/listenerfilters.pyx"
include "policy/fault.pyx"
include "policy/error_service.pyx"
include "policy/units.pyx"
