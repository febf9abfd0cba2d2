# Any group: units of a policy with satisfy: Any. The first unit that lets a request pass decides; the others are not asked.
#
# In: the units of a rule, in order: authorization, credentials, external authorization. Out: an admission, an answer, or a wait. If all
# refuse, the answer is that of the last one; 401 comes before 403. A service that fails, and a broken unit, end the check.
# Must never let a request pass without a unit of the group that lets it pass.

cdef class AnyGroup:
    cdef bint defers(self, LivePolicy policy, bytes word, bytes challenge) except -1:
        """Note a missing or wrong credential; False: no other unit can let the request pass."""
        if self.refuser is None:
            self.refuser = policy
            self.word = word
            self.challenge = b""
        self.challenge += challenge
        self.left -= 1
        return self.left > 0


cdef AnyGroup group_of(RuleAuthFlow flow, LivePolicy policy):
    """The group of a unit; None: it decides alone."""
    if flow.groups is None or policy is None or policy.group is None:
        return None
    return flow.groups.get(policy.group)


cdef PolicyResult evaluate_any(RulePolicyChain chain, Exchange ex, Routed *at, ef_request *request) except *:
    """As RulePolicyChain.evaluate, where a policy has satisfy: Any."""
    cdef LivePolicy policy
    cdef AnyGroup group
    cdef dict groups = {}
    cdef bint asked = chain.own is not None
    for policy in chain.policies:
        if policy.group is not None and (policy.proof is not None or policy.service is not None):
            group = groups.get(policy.group)
            if group is None:
                group = groups[policy.group] = AnyGroup.__new__(AnyGroup)
            group.left += 1
    for policy in chain.policies:
        if policy.status:
            policy.refuse(ex, policy.status, None, F_INVALID)
            return ANSWERED
        if policy.access is None:
            continue
        if policy.access.asks_token:  # it speaks last
            asked = True
            continue
        group = groups.get(policy.group) if policy.group is not None else None
        if policy.access.admits(ex.client, ex.down.peer, request, None):
            ef_stat_add(&policy.row.cells[P_ALLOWED], 1)
            if group is not None:
                group.met = True
        elif group is None:
            policy.refuse(ex, 403, policy.access.decided.log if policy.access.decided is not None else None, F_DENIED)
            return ANSWERED
    for policy in chain.policies:
        if policy.proof is not None or policy.service is not None:
            group = groups.get(policy.group) if policy.group is not None else None
            asked |= group is None or not group.met
    return chain.start_auth(ex, at, request, groups) if asked else ADMITTED
