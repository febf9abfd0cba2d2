"""Chart template: text of a Helm chart that was not rendered, and is therefore not YAML.

In: text that cannot be parsed. Out: the problem to report instead of the parser's. Must never: be
called for text that can be parsed.
"""

from __future__ import annotations

import re

from edgefast.api.decode.yaml_text import SyntaxProblem

__all__ = ["find_template"]

#: An action of a template of Helm.
_ACTION = re.compile(
    rb"\{\{-?\s*(?:[.$]|/\*|(?:if|else|end|range|with|define|include|template|tpl|toYaml)\b)"
)
_RENDER = (
    "a template of a Helm chart (expected YAML or JSON); render the chart first: "
    "helm template NAME CHART | edgefast check -f -"
)


def find_template(text: bytes) -> SyntaxProblem | None:
    """Return the mistake at the first action of a template, None when the text has none."""
    found = _ACTION.search(text)
    return SyntaxProblem(_RENDER, text.count(b"\n", 0, found.start())) if found else None
