"""SecurityPolicies and BackendTrafficPolicies: what they come to at rules, in fleets, in statuses."""
