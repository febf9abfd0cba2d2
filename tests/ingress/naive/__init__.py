"""A naive evaluator of what ingress-nginx answers: each rule is a small function with its sentence as docstring.

In: objects as YAML gives them, a request. Out: `message.Answer`. Pure Python, `re` on bytes in the place of PCRE.
Must never: import the product, or the renderer of the oracle.
"""

from ingress.naive.evaluate import Evaluator

__all__ = ["Evaluator"]
