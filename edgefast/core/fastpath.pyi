"""Types of the fast path (edgefast/core/fastpath.pyx) that tests replace."""

from httptools import HttpRequestParser as HttpRequestParser
from httptools import HttpResponseParser as HttpResponseParser
